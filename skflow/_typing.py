"""Types for whoever checks programs that use skflow: scikit-learn has none, and untyped bases make all Any.

At run time these names are scikit-learn's own.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, Self, TypeVar

    import numpy as np
    import pandas as pd
    from numpy.typing import ArrayLike

    _F = TypeVar("_F", bound=Callable[..., Any])

    class BaseEstimator:
        n_features_in_: int
        feature_names_in_: np.ndarray

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def get_metadata_routing(self) -> Any: ...
        def set_fit_request(self, **requests: bool | str | None) -> Self: ...
        def set_partial_fit_request(self, **requests: bool | str | None) -> Self: ...
        def set_score_request(self, **requests: bool | str | None) -> Self: ...
        def _validate_params(self) -> None: ...
        def __sklearn_tags__(self) -> Any: ...
        def __getstate__(self) -> dict[str, Any]: ...
        def __setstate__(self, state: dict[str, Any]) -> None: ...

    class TransformerMixin:
        def fit_transform(
            self, X: ArrayLike, y: ArrayLike | None = None, **fit_params: Any
        ) -> np.ndarray: ...
        def set_output(self, *, transform: Literal["default", "pandas", "polars"] | None = None) -> Self: ...

    class OneToOneFeatureMixin:
        def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray: ...

    class ClassNamePrefixFeaturesOutMixin:
        def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray: ...

    class RegressorMixin: ...

    class ClassifierMixin:
        def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float: ...

    class Bunch(dict[str, Any]):
        def __init__(self, **kwargs: Any) -> None: ...

    class Pairs(Bunch):
        """Sentence pairs with gold scores."""

        pairs: np.ndarray
        score: np.ndarray
        subset: np.ndarray

    class MiniSTS(Pairs):
        """What load_mini_sts returns."""

        unlabeled: list[str]
        feature_names: list[str]
        target_names: list[str]
        DESCR: str
        filename: str

    class MiniSTSFrames(Bunch):
        """The same with ``as_frame=True``."""

        pairs: pd.DataFrame
        score: pd.Series
        subset: pd.Series
        frame: pd.DataFrame
        unlabeled: list[str]
        feature_names: list[str]
        target_names: list[str]
        DESCR: str
        filename: str

    class STSTask(Pairs):
        """What load_sts returns."""

        split: np.ndarray
        DESCR: str

    def _fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[_F], _F]: ...

else:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        OneToOneFeatureMixin,
        RegressorMixin,
        TransformerMixin,
        _fit_context,
    )
    from sklearn.utils import Bunch

    MiniSTS = MiniSTSFrames = STSTask = Bunch

fit_context = _fit_context  # without the underscore, since it is used across packages

__all__ = [
    "BaseEstimator",
    "Bunch",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "MiniSTS",
    "MiniSTSFrames",
    "OneToOneFeatureMixin",
    "RegressorMixin",
    "STSTask",
    "TransformerMixin",
    "fit_context",
]
