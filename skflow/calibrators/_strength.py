"""How strongly to whiten, from the vectors alone."""

import numpy as np


def automatic_strength(mean, covariance):
    r"""Choose the strength of a whitening from the first two moments of the rows.

    .. math::

        s = 1 - \frac{\mathrm{tr}\,\Sigma}{\mu^T \mu + \mathrm{tr}\,\Sigma}
        \sqrt{\frac{\mathrm{tr}\,\Sigma^2}{\mu^T \Sigma \mu + \mathrm{tr}\,\Sigma^2}}

    See :class:`~skflow.calibrators.WhiteningCalibrator` for what it means. Common factors of `mean` and
    ``sqrt(covariance)``, and rotations of both, do not alter it.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
    covariance : ndarray of shape (n_features, n_features)

    Returns
    -------
    strength : float
        From 0 to 1; 0 where the rows do not vary.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.calibrators._strength import automatic_strength
    >>> automatic_strength(np.zeros(2), np.diag([3.0, 1.0]))
    0.0
    >>> automatic_strength(np.array([0.0, 1.0]), np.diag([0.0, 1.0]))  # 1 - 1/2 * sqrt(1/2)
    0.6464466094067263
    """
    unit = max(np.abs(mean).max(), np.sqrt(np.trace(covariance)))
    if unit == 0:
        return 0.0
    mean, covariance = mean / unit, covariance / unit / unit
    total = np.trace(covariance)
    squared = np.einsum("ij,ij->", covariance, covariance)
    if squared == 0:  # too small beside the mean, or no variance at all
        return float(total > 0)
    along_mean = max(mean @ covariance @ mean, 0.0)
    specific = total / (mean @ mean + total) * np.sqrt(squared / (along_mean + squared))
    return float(np.clip(1 - specific, 0, 1))
