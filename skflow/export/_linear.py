"""The closed-form calibrators as short lists of array operations."""

import numpy as np

from ..calibrators import NATSVCalibrator, StandardNormalizationCalibrator, WhiteningCalibrator


def linear_operations(calibrator):
    """Write the transform of a closed-form calibrator for float32 input as operations on arrays.

    Parameters
    ----------
    calibrator : StandardNormalizationCalibrator, NATSVCalibrator or WhiteningCalibrator
        Fitted.

    Returns
    -------
    dtype : numpy.dtype
        What to compute in: float64 where the calibrator itself does for the sake of precision.
    operations : list of (str, ndarray)
        To be applied in order, each with its operand a: "subtract" is x - a, "divide" is x / a, "multiply" is
        x @ a, "deflate" is x - (x @ a.T) @ a. The arrays are of `dtype`.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.calibrators import StandardNormalizationCalibrator
    >>> from skflow.export._linear import linear_operations
    >>> calibrator = StandardNormalizationCalibrator().fit(np.array([[1.0], [3.0]]))
    >>> [(kind, operand.tolist()) for kind, operand in linear_operations(calibrator)[1]]
    [('subtract', [2.0]), ('subtract', [0.0]), ('divide', [1.0])]
    """
    if isinstance(calibrator, StandardNormalizationCalibrator):
        dtype = calibrator._precision(np.float32, calibrator.scale_)
        operations = [("divide", calibrator.scale_)]
    elif isinstance(calibrator, NATSVCalibrator):
        dtype = calibrator._precision(np.float32, calibrator._deviations)
        operations = [("deflate", calibrator.components_)] * 2
    elif isinstance(calibrator, WhiteningCalibrator):
        dtype = calibrator._product_dtype(np.float32)
        gains = calibrator._gains(0, -calibrator.strength_)
        operations = [("multiply", calibrator.components_.T * gains)]
        if calibrator.method == "zca":
            operations.append(("multiply", calibrator.components_))
    else:
        raise TypeError(f"{type(calibrator).__name__} is no closed-form calibrator.")
    # A mean in two parts keeps its full precision in narrow subtractions.
    high = calibrator.mean_.astype(dtype)
    operations = [("subtract", high), ("subtract", calibrator.mean_ - high), *operations]
    return dtype, [(kind, np.ascontiguousarray(operand, dtype=dtype)) for kind, operand in operations]
