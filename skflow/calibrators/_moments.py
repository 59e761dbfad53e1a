"""Running mean and variance or covariance of rows, the same in one piece or in many."""

import numpy as np
from sklearn.utils import gen_batches

CHUNK_BYTES = 4 * 2**20  # of float64: large enough for fast products, small enough for caches and memory maps
_SAFE_EXPONENT = 300  # 2**300 squared is far from overflow, 2**-300 squared far from underflow


def row_chunks(X):
    """Yield slices that cut the rows of X into chunks of bounded size."""
    n_samples, n_features = X.shape
    return gen_batches(n_samples, max(1, CHUNK_BYTES // (8 * n_features)))


class RunningMoments:
    r"""Mean and second central moments of all rows seen, updated chunk by chunk.

    With total weight :math:`w_a`, mean :math:`\mu_a` and covariance :math:`C_a` so far, a chunk that has
    :math:`w_b`, :math:`\mu_b` and :math:`C_b` gives, for :math:`f = w_b / (w_a + w_b)` and
    :math:`\delta = \mu_b - \mu_a`,

    .. math:: \mu = \mu_a + f \delta, \qquad C = (1 - f) C_a + f C_b + f (1 - f) \delta \delta^T.

    Rows are taken as deviations from the running mean (from the first row at the start), so that nothing is
    lost to cancellation and a constant feature has a variance of exactly zero. Everything is float64.
    Arrays are replaced, never written to, so that what a failed update leaves behind is what was there
    before.

    Parameters
    ----------
    n_samples : int or float
        Rows seen, or the sum of their weights.
    mean : ndarray of shape (n_features,)
    residual : ndarray of shape (n_features,)
        What the mean lacks by rounding. Without it, variances far off the origin would depend on the pieces.
    second : ndarray of shape (n_features,) or (n_features, n_features)
        Population variances or covariance (divided by the total weight) in units of ``4.0**exponent``.
    exponent : ndarray of int, of shape (n_features,) or ()
        Binary exponent of the deviations, 0 but for data whose squares leave the range of float64.

    References
    ----------
    T. F. Chan, G. H. Golub, R. J. LeVeque (1983), "Algorithms for computing the sample variance: analysis and
    recommendations", The American Statistician 37(3), doi:10.1080/00031305.1983.10483115.
    """

    def __init__(self, n_samples, mean, residual, second, exponent):
        self.n_samples = n_samples
        self.mean = mean
        self.residual = residual
        self.second = second
        self.exponent = exponent

    @classmethod
    def empty(cls, n_features, *, full):
        """Return the moments of no rows: of whole covariances if `full`, else of variances."""
        zeros = np.zeros(n_features)
        if full:
            return cls(0, zeros, zeros, np.zeros((n_features, n_features)), np.zeros((), dtype=int))
        return cls(0, zeros, zeros, zeros, np.zeros(n_features, dtype=int))

    def update(self, X, sample_weight=None):
        """Add the rows of X, of any real dtype, reading them once and in order."""
        for rows in row_chunks(X):
            chunk, weight = X[rows], None
            if sample_weight is not None:
                weight = sample_weight[rows]
                chunk, weight = chunk[weight > 0], weight[weight > 0]
            if len(chunk):
                self._merge(chunk, weight)

    def _merge(self, rows, weight):
        if weight is None:
            added, share = len(rows), np.full(len(rows), 1 / len(rows))
        else:
            added = weight.sum()
            share = weight / added
        total = self.n_samples + added
        fraction = added / total
        shift = self.mean if self.n_samples else rows[0].astype(np.float64)

        deviations, reach, halved = _deviations(rows, shift)
        centre = share @ deviations  # of the new rows, seen from shift
        delta = centre - self.residual
        if halved:
            mean = 2 * (shift / 2 + fraction * delta)
            residual = np.zeros_like(mean)
        else:
            step = self.residual + fraction * delta
            mean = shift + step
            residual = step - (mean - shift)

        exponent = self._common_exponent(reach, halved)
        if np.any(exponent) or halved:
            deviations, centre, delta = (
                np.ldexp(values, halved - exponent) for values in (deviations, centre, delta)
            )
        second = self.second
        if np.any(self.exponent):
            second = np.ldexp(second, 2 * (self.exponent - exponent))
        deviations -= centre
        if second.ndim == 1:
            within = share @ np.square(deviations)
            between = np.square(delta)
        else:
            deviations *= np.sqrt(share)[:, np.newaxis]
            within = deviations.T @ deviations
            between = np.outer(delta, delta)
        between *= 1 - fraction
        within += between
        within *= fraction
        within += (1 - fraction) * second
        self.n_samples, self.mean, self.residual = total, mean, residual
        self.second, self.exponent = within, exponent

    def _common_exponent(self, reach, halved):
        """Return the exponent that keeps the squares of both the old and the new deviations in range."""
        if self.second.ndim == 2:
            reach = reach.max()
            spread = self.second.any()
        else:
            spread = self.second > 0
        exponent = np.frexp(reach)[1] + halved
        exponent = np.where(np.abs(exponent) <= _SAFE_EXPONENT, 0, exponent)
        exponent = np.where(spread, np.maximum(self.exponent, exponent), exponent)
        return np.where(reach > 0, exponent, self.exponent)


def _deviations(rows, shift):
    """Return ``rows - shift``, its largest magnitudes, and whether both are halved against overflow."""
    with np.errstate(over="ignore"):
        deviations = np.subtract(rows, shift, out=np.empty(rows.shape), casting="same_kind")
    reach = np.maximum(deviations.max(axis=0), -deviations.min(axis=0))
    if np.isfinite(reach).all():
        return deviations, reach, 0
    np.subtract(rows * 0.5, shift * 0.5, out=deviations)
    return deviations, np.maximum(deviations.max(axis=0), -deviations.min(axis=0)), 1
