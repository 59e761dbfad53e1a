"""The affine maps that stand before and after a flow."""

from functools import cached_property

import numpy as np

from ._moments import centered


class Affine:
    r"""The map y = ((x - shift) M) / scale with an orthogonal matrix M.

    Parameters
    ----------
    shift : ndarray of shape (n_features,), default=None
        None for 0.
    scale : ndarray of shape (n_features,), default=None
        Positive; None for 1.
    matrix : ndarray of shape (n_features, n_features), default=None
        Orthogonal; None for the identity.
    is_float32_enough : bool, default=False
        Whether the product with `matrix` may be computed in float32 where the rows are.

    Attributes
    ----------
    log_det : float
        Logarithm of the absolute determinant of the map's Jacobian, in nats.
    operations : list of (str, ndarray)
        The map in the words of `__skflow_operations__`.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.calibrators._affine import Affine
    >>> affine = Affine(shift=np.array([1.0, 0.0]), scale=np.array([2.0, 4.0]))
    >>> affine(np.array([[3.0, 4.0]]))
    array([[1., 1.]])
    >>> affine.inverse(np.array([[1.0, 1.0]]))
    array([[3., 4.]])
    """

    def __init__(self, shift=None, scale=None, matrix=None, *, is_float32_enough=False):
        self.is_float32_enough = is_float32_enough
        # What does nothing is left out, so that it neither costs nor rounds anything.
        self.shift = None if shift is None or not np.any(shift) else shift
        self.scale = None if scale is None or np.all(scale == 1) else scale
        self.matrix = matrix

    @cached_property
    def _product(self):
        return self.matrix if self.scale is None else self.matrix / self.scale

    @cached_property
    def _narrow_product(self):
        return self._product.astype(np.float32)

    @cached_property
    def _inverse_product(self):
        return self.matrix.T if self.scale is None else self.matrix.T * self.scale[:, np.newaxis]

    @property
    def log_det(self):
        return 0.0 if self.scale is None else -float(np.log(self.scale).sum())

    @property
    def operations(self):
        steps = [("subtract", self.shift)]
        steps.append(("divide", self.scale) if self.matrix is None else ("multiply", self._product))
        return [(kind, operand) for kind, operand in steps if operand is not None]

    def __call__(self, X):
        """Map the rows of X; X itself where the map is the identity."""
        if self.matrix is not None and self.is_float32_enough and X.dtype != np.float64:
            X = X if self.shift is None else centered(X, self.shift, np.dtype(np.float32))
            return X @ self._narrow_product
        if self.shift is not None:
            X = X - self.shift
        if self.matrix is not None:
            return X @ self._product
        return X if self.scale is None else X / self.scale

    def inverse(self, Y):
        """Invert the map."""
        if self.matrix is not None:
            Y = Y @ self._inverse_product
        elif self.scale is not None:
            Y = Y * self.scale
        return Y if self.shift is None else Y + self.shift
