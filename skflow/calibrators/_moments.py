"""Running mean and variance or covariance of rows, the same in one piece or in many."""

import numpy as np
from sklearn.utils import gen_batches

CHUNK_BYTES = 4 * 2**20  # of float64: large enough for fast products, small enough for caches and memory maps
COVARIANCE_CHUNK_BYTES = 8 * CHUNK_BYTES  # a covariance is updated once for each


def row_chunks(X, n_bytes=CHUNK_BYTES):
    """Yield slices that cut the rows of X into chunks of bounded size."""
    n_samples, n_features = X.shape
    return gen_batches(n_samples, max(1, n_bytes // (8 * n_features)))


def centered(rows, mean, dtype):
    """Return ``rows - mean`` as a new array of `dtype`, with a float64 mean in full precision."""
    # Two narrow subtractions are several times faster than one of mixed precision, and as exact.
    high = mean.astype(dtype)
    result = np.subtract(rows, high, out=np.empty(rows.shape, dtype=dtype), casting="same_kind")
    if dtype != np.float64:
        result -= (mean - high).astype(dtype)
    return result


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
        Population variances or covariance (divided by the total weight).

    References
    ----------
    T. F. Chan, G. H. Golub, R. J. LeVeque (1983), "Algorithms for computing the sample variance: analysis and
    recommendations", The American Statistician 37(3), doi:10.1080/00031305.1983.10483115.
    """

    def __init__(self, n_samples, mean, residual, second):
        self.n_samples = n_samples
        self.mean = mean
        self.residual = residual
        self.second = second

    @classmethod
    def empty(cls, n_features, *, full):
        """Return the moments of no rows: of whole covariances if `full`, else of variances."""
        zeros = np.zeros(n_features)
        return cls(0, zeros, zeros, np.zeros((n_features, n_features)) if full else zeros)

    def update(self, X, sample_weight=None):
        """Add the rows of X, of any real dtype, reading them once and in order."""
        for rows in row_chunks(X, CHUNK_BYTES if self.second.ndim == 1 else COVARIANCE_CHUNK_BYTES):
            chunk, weight = X[rows], None
            if sample_weight is not None:
                weight = sample_weight[rows]
                chunk, weight = chunk[weight > 0], weight[weight > 0]
            if len(chunk):
                self._merge(chunk, weight)

    def _merge(self, rows, weight):
        """Add one chunk of rows."""
        if weight is None:
            added, share = len(rows), np.full(len(rows), 1 / len(rows))
        else:
            added = weight.sum()
            share = weight / added
        total = self.n_samples + added
        fraction = added / total
        shift = self.mean if self.n_samples else rows[0].astype(np.float64)

        deviations = np.subtract(rows, shift, out=np.empty(rows.shape), casting="same_kind")
        center = share @ deviations  # of the new rows, seen from shift
        delta = center - self.residual
        step = self.residual + fraction * delta
        mean = shift + step
        deviations -= center
        if self.second.ndim == 1:
            second = share @ np.square(deviations)
            between = np.square(delta)
        else:
            if weight is None or np.all(weight == weight[0]):  # saves a pass over the rows
                second = deviations.T @ deviations
                second /= len(rows)
            else:
                deviations *= np.sqrt(share)[:, np.newaxis]
                second = deviations.T @ deviations
            between = np.outer(delta, delta)
        between *= 1 - fraction
        second += between
        second *= fraction
        second += (1 - fraction) * self.second
        self.n_samples, self.mean, self.residual, self.second = total, mean, step - (mean - shift), second
