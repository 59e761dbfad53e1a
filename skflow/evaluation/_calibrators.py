"""Candidates behind one encoder: which there are, and what each makes of its vectors."""

from collections.abc import Mapping

from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from .._pairs import check_n_vectors, is_passthrough


def check_calibrators(calibrators):
    """Return calibrators by name, None as "passthrough"; a sequence is named after the classes."""
    if isinstance(calibrators, str) or hasattr(calibrators, "fit"):
        raise TypeError(f"calibrators must be a dict or a sequence of calibrators, got {calibrators!r}")
    if not isinstance(calibrators, Mapping):
        estimators = list(calibrators)
        names = [e if isinstance(e, str) else type(e).__name__ for e in estimators]
        # Two of one class become WhiteningCalibrator-1 and -2, as make_pipeline numbers its steps.
        numbers = [names[: i + 1].count(name) for i, name in enumerate(names)]
        names = [
            f"{name}-{number}" if names.count(name) > 1 else name
            for name, number in zip(names, numbers, strict=True)
        ]
        calibrators = dict(zip(names, estimators, strict=True))
    if not calibrators:
        raise ValueError("calibrators is empty; give at least one, such as 'passthrough'")
    for name, calibrator in calibrators.items():
        is_transformer = hasattr(calibrator, "fit") and hasattr(calibrator, "transform")
        if isinstance(calibrator, type) or not (
            is_transformer or calibrator is None or is_passthrough(calibrator)
        ):
            raise TypeError(f"calibrator {name!r} must be a transformer or 'passthrough', got {calibrator!r}")
    return {name: "passthrough" if c is None else c for name, c in calibrators.items()}


def fit_calibrator(calibrator, Z):
    """Return a clone of the calibrator that is fitted, without labels, on vectors."""
    return calibrator if is_passthrough(calibrator) else clone(calibrator).fit(Z, None)


def calibrate(calibrator, Z):
    """Return the vectors as a fitted calibrator maps them."""
    return Z if is_passthrough(calibrator) else check_n_vectors(calibrator.transform(Z), _num_samples(Z))
