"""The steps of a fitted pipeline, checked for what an export can carry."""

from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..calibrators._base import BaseCalibrator
from ..embedders import BertEmbedder


def flatten(estimator, prefix=""):
    """List the steps of an estimator in the order in which they transform.

    Parameters
    ----------
    estimator : estimator
        A pipeline, whose inner pipelines are unpacked and whose "passthrough" steps are left out, or any
        other estimator, which is a step itself.
    prefix : str, default=""
        What the names of the steps begin with.

    Returns
    -------
    steps : list of (str, estimator)
        How to call each step in an error message, and the step.

    Examples
    --------
    >>> from sklearn.pipeline import Pipeline
    >>> from skflow.calibrators import NATSVCalibrator
    >>> from skflow.export._steps import flatten
    >>> flatten(Pipeline([("a", "passthrough"), ("b", Pipeline([("c", NATSVCalibrator())]))]))
    [("step 'b__c' (NATSVCalibrator)", NATSVCalibrator())]
    """
    if not isinstance(estimator, Pipeline):
        kind = type(estimator).__name__
        return [(f"step {prefix!r} ({kind})" if prefix else f"the {kind}", estimator)]
    steps = []
    for name, step in estimator.steps:
        if step is not None and step != "passthrough":
            steps += flatten(step, f"{prefix}__{name}" if prefix else name)
    return steps


def check_calibrators(steps):
    """Check that steps are fitted calibrators that follow one another.

    Parameters
    ----------
    steps : list of (str, estimator)
        From :func:`flatten`.

    Returns
    -------
    calibrators : list of estimator
        The calibrators.

    Raises
    ------
    TypeError
        If a step does not say what its `transform` computes.
    ValueError
        If a calibrator cannot be exported, such as a flow built by a callable, or if a step returns another
        number of features than the next one takes.
    NotFittedError
        If a step is not fitted.
    """
    n_features = None
    for name, step in steps:
        if isinstance(step, BertEmbedder):
            raise TypeError(f"{name} takes text, where only calibrators can stand.")
        if not _says_what_it_computes(type(step)):
            raise TypeError(
                f"{name} cannot be exported; expected a calibrator of skflow, or a class derived from one "
                "that defines __skflow_operations__ beside its transform."
            )
        check_fitted(name, step)
        try:
            step.__skflow_operations__()
        except ValueError as error:
            raise ValueError(f"{name} cannot be exported: {error}") from error
        check_n_features(name, step, n_features)
        n_features = n_features_out(step)
    return [step for _, step in steps]


def _says_what_it_computes(kind):
    """Return whether the class that defines `transform` defines the operations, too."""
    if not issubclass(kind, BaseCalibrator):
        return False
    own = next(cls for cls in kind.__mro__ if "transform" in vars(cls))
    return "__skflow_operations__" in vars(own)


def n_features_out(step):
    """Return how many features a fitted calibrator returns."""
    return len(step.get_feature_names_out())


def check_fitted(name, step):
    """Raise NotFittedError, naming the step, if it is not fitted."""
    try:
        check_is_fitted(step)
    except NotFittedError as error:
        raise NotFittedError(f"{name} is not fitted: call fit before exporting.") from error


def check_n_features(name, step, n_features):
    """Raise ValueError if a calibrator does not take `n_features`, unless that is None for unknown."""
    if n_features not in (None, step.n_features_in_):
        raise ValueError(
            f"{name} was fitted on {step.n_features_in_} features, but what comes before it returns "
            f"{n_features}."
        )
