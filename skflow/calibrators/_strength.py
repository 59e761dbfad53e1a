"""How strongly to whiten, from the vectors alone."""

import numpy as np


def automatic_strength(mean, covariance):
    r"""Choose the strength of a whitening from the first two moments of the rows.

    .. math::

        s = \sqrt[3]{\frac{\max_j |\mu_j|}{\|\mu\|}} \left(1 - \frac{\mathrm{tr}\,\Sigma}{\mu^T \mu
        + \mathrm{tr}\,\Sigma} \cdot
        \frac{\mathrm{tr}\,\Sigma^2}{\mu^T \Sigma \mu + \mathrm{tr}\,\Sigma^2}\right)

    See :class:`~skflow.calibrators.WhiteningCalibrator` for what it means. Common factors of `mean` and
    ``sqrt(covariance)`` do not alter it.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
    covariance : ndarray of shape (n_features, n_features)

    Returns
    -------
    strength : float
        From 0 to 1; 0 where the rows do not vary, or about the origin.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.calibrators._strength import automatic_strength
    >>> automatic_strength(np.zeros(2), np.diag([3.0, 1.0]))
    0.0
    >>> automatic_strength(np.array([0.0, 1.0]), np.diag([0.0, 1.0]))  # 1 - 1/2 * 1/2
    0.75
    """
    total = np.trace(covariance)
    length = np.linalg.norm(mean)
    if total == 0 or length == 0:
        return 0.0
    concentration = np.cbrt(np.abs(mean).max() / length)
    squared = np.einsum("ij,ij->", covariance, covariance)
    along_mean = max(mean @ covariance @ mean, 0.0)
    # Too small beside the mean for squares: all that varies does so along the mean.
    specific = squared / (along_mean + squared) if squared > 0 else 0.0
    return float(np.clip(concentration * (1 - total / (length**2 + total) * specific), 0, 1))
