"""What the embedders share as estimators."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._documentation import DocumentationLink
from .._persistence import VersionStamped
from .._typing import BaseEstimator, TransformerMixin


class BaseTextEmbedder(DocumentationLink, VersionStamped, TransformerMixin, BaseEstimator):
    """Base class of transformers from a column of text to float32 vectors.

    A subclass has the parameters `sif` and `normalize`, and a method ``_n_features()``. Unless `sif` is given
    it learns nothing, and `transform` needs no `fit`.
    """

    _n_features: Callable[..., int]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return the names of the output features.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of shape (n_features,) of str
            The lower-case name of the class, numbered from 0.

        Raises
        ------
        OSError
            If the model cannot be found.
        """
        if hasattr(self, "_n_features_out"):
            n_features = self._n_features_out
        else:
            check_is_fitted(self)
            n_features = self._n_features()
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{i}" for i in range(n_features)], dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        tags.requires_fit = self.sif is not None
        return tags

    def _scaled(self, vectors):
        """Scale vectors, which may be overwritten, to unit length if that is asked for."""
        if self.normalize:
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.where(norms == 0, 1, norms)
        return vectors


def sif_weights(a, frequencies):
    """Return the smooth inverse frequency weights a / (a + p) of Arora et al. (2017).

    Parameters
    ----------
    a : float
        The constant, above 0.
    frequencies : ndarray
        Frequencies p of tokens, shares of 1.

    Returns
    -------
    weights : ndarray
        float32, 1 for a token never seen.
    """
    return (a / (a + frequencies)).astype(np.float32)
