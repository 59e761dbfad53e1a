"""Fitted calibrators as ONNX graphs, built node by node from their arrays."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._persistence import write_atomically
from .._version import __version__
from ._steps import check_calibrators, flatten, n_features_out

# The first opset in which Split takes sizes as an input.
MIN_OPSET = 13
DEFAULT_OPSET = 17


def to_onnx(calibrator: Any, path: str | PathLike[str], *, opset: int = DEFAULT_OPSET) -> None:
    """Write a fitted calibrator, or a pipeline of several, as an ONNX model.

    The model has one input, "X", and one output, "Z", both float32 of shape (n_samples, n_features) with any
    n_samples. It needs no skflow, scikit-learn or torch where it runs.

    Parameters
    ----------
    calibrator : estimator or sklearn.pipeline.Pipeline
        A fitted StandardNormalizationCalibrator, NATSVCalibrator, WhiteningCalibrator, or
        NormalizingFlowCalibrator with ``flow="glow"``; or a pipeline of these, such as ``pipeline[1:]`` of
        one that starts with an embedder. "passthrough" steps and pipelines inside it are fine.
    path : str or path-like
        File to write. A former file is replaced in one step.
    opset : int, default=17
        Version of ONNX's operator set, from 13 to the newest that the package onnx knows. Older runtimes read
        older ones only.

    Raises
    ------
    ImportError
        If the package onnx is not installed.
    TypeError
        If a step is not one of skflow's calibrators. The message names the step.
    NotFittedError
        If a step is not fitted.
    ValueError
        If a flow is not a Glow, if there is no calibrator at all, if a step takes another number of features
        than the one before it returns, or if `opset` is out of range.

    Notes
    -----
    For float32 input the result is that of `transform` up to rounding. Where `transform` computes in float64
    for the sake of precision, so does the model. Unlike `transform`, it does not check its input: NaN and
    infinities go through.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import onnxruntime
    >>> from skflow.calibrators import WhiteningCalibrator
    >>> from skflow.export import to_onnx
    >>> X = np.random.RandomState(0).standard_normal((100, 4)).astype(np.float32)
    >>> calibrator = WhiteningCalibrator().fit(X)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = os.path.join(directory, "calibrator.onnx")
    ...     to_onnx(calibrator, path)
    ...     session = onnxruntime.InferenceSession(path)
    >>> bool(np.allclose(session.run(["Z"], {"X": X})[0], calibrator.transform(X), atol=1e-5))
    True
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError("to_onnx needs the package onnx: pip install 'scikit-bertflow[onnx]'") from error
    newest = onnx.defs.onnx_opset_version()
    if not MIN_OPSET <= opset <= newest:
        raise ValueError(f"opset={opset!r} is out of range; expected an int from {MIN_OPSET} to {newest}.")
    steps = flatten(calibrator)
    calibrators = check_calibrators(steps)
    if not calibrators:
        raise ValueError("the pipeline has no calibrator: there is nothing to export.")
    graph = _Graph(onnx)
    x = "X"
    for name, step in steps:
        dtype, operations = step.__skflow_operations__()
        _check_flows(name, operations)
        x = _operations(graph, x, dtype, operations)
    graph.nodes.append(onnx.helper.make_node("Identity", [x], ["Z"]))
    described = " -> ".join(type(step).__name__ for step in calibrators)
    model = graph.to_model(calibrators[0].n_features_in_, n_features_out(calibrators[-1]), opset, described)
    write_atomically(Path(path), model.SerializeToString())


def _check_flows(name, operations):
    """Raise ValueError for a flow that cannot be written, naming the step."""
    flows = [operand for kind, operand in operations if kind == "flow"]
    if flows:
        from ..flows import Glow

        for flow in flows:
            if not isinstance(flow, Glow):
                raise ValueError(
                    f"{name} cannot be exported to ONNX: flow={flow.name!r}, where only 'glow' can be."
                )


class _Graph:
    """Nodes and constants of an ONNX graph, with a name made up for each value."""

    def __init__(self, onnx):
        self._onnx = onnx
        self.nodes = []
        self._constants = []
        self._n_values = 0

    def _new_name(self, kind):
        self._n_values += 1
        return f"{kind.lower()}_{self._n_values}"

    def constant(self, array):
        """Add an array and return its name."""
        name = self._new_name("constant")
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, op, *inputs, n_outputs=1, **attributes):
        """Add a node on named values and arrays; return the name of its output, or a list of several."""
        inputs = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        outputs = [self._new_name(op) for _ in range(n_outputs)]
        self.nodes.append(self._onnx.helper.make_node(op, inputs, outputs, **attributes))
        return outputs[0] if n_outputs == 1 else outputs

    def cast(self, x, dtype):
        """Add a conversion to a numpy dtype."""
        types = {"float32": self._onnx.TensorProto.FLOAT, "float64": self._onnx.TensorProto.DOUBLE}
        return self.node("Cast", x, to=types[np.dtype(dtype).name])

    def split(self, x, *widths):
        """Split features in parts."""
        return self.node("Split", x, np.array(widths, dtype=np.int64), n_outputs=len(widths), axis=1)

    def take(self, x, order):
        """Reorder features."""
        return self.node("Gather", x, np.asarray(order, dtype=np.int64), axis=1)

    def to_model(self, n_inputs, n_outputs, opset, described):
        """Return the whole as a checked ModelProto."""
        helper = self._onnx.helper
        ends = [
            helper.make_tensor_value_info(name, self._onnx.TensorProto.FLOAT, ["n_samples", width])
            for name, width in (("X", n_inputs), ("Z", n_outputs))
        ]
        graph = helper.make_graph(self.nodes, "calibration", ends[:1], ends[1:], initializer=self._constants)
        opsets = [helper.make_opsetid("", opset)]
        model = helper.make_model(
            graph,
            opset_imports=opsets,
            # The oldest format that has the opset: runtimes lag behind the newest.
            ir_version=helper.find_min_ir_version_for(opsets),
            producer_name="skflow",
            producer_version=__version__,
            doc_string=described,
        )
        self._onnx.checker.check_model(model, full_check=True)
        return model


def _operations(graph, x, dtype, operations):
    """Add the operations of a calibrator: see `BaseCalibrator.__skflow_operations__`."""
    is_wide = dtype == np.float64
    if is_wide:
        x = graph.cast(x, np.float64)
    for kind, operand in operations:
        if kind == "flow":
            x = graph.cast(x, np.float32) if is_wide else x
            x = _glow(graph, x, operand.float().requires_grad_(False))
            x = graph.cast(x, np.float64) if is_wide else x
            continue
        a = np.asarray(operand, dtype=dtype)
        if kind == "deflate":
            x = graph.node("Sub", x, graph.node("MatMul", graph.node("MatMul", x, a.T), a))
        else:
            x = graph.node({"subtract": "Sub", "divide": "Div", "multiply": "MatMul"}[kind], x, a)
    return graph.cast(x, np.float32) if is_wide else x


def _glow(graph, x, flow):
    """Add the levels of a Glow."""
    width = flow.n_features
    parts = []
    for level, steps in enumerate(flow.levels):
        for step in steps:
            for layer in step.layers():
                x = _layer(graph, x, layer, width)
        if level < len(flow.levels) - 1:
            n_kept = width // 2
            if flow.reversed_at_end[level]:
                final, x = graph.split(x, width - n_kept, n_kept)
                final = graph.take(final, np.arange(width - n_kept)[::-1])
            else:
                x, final = graph.split(x, n_kept, width - n_kept)
            parts.append(final)
            width = n_kept
    if flow.reversed_at_end[-1]:
        x = graph.take(x, np.arange(width)[::-1])
    return graph.node("Concat", *parts, x, axis=1)


def _layer(graph, x, layer, width):
    """Add one invertible layer of a Glow."""
    from ..flows._layers import ActNorm, Coupling, LULinear, Permutation

    match layer:
        case ActNorm():
            scale = _scale(layer)
            # Of a mean of many deviations little is left. torch rounds the product and the sum at once.
            x = graph.node("Mul", graph.cast(x, np.float64), scale.astype(np.float64))
            x = graph.node("Add", x, (scale * layer.bias.numpy()).astype(np.float64))
            return graph.cast(x, np.float32)
        case Permutation():
            return graph.take(x, layer.order.numpy())
        case LULinear():
            lower, upper = layer.factors()
            matrix = (upper.double().T @ lower.double().T)[:, layer.order].numpy()
            return graph.node("MatMul", x, matrix.astype(np.float32))
        case Coupling():
            return _coupling(graph, x, layer, width)
    raise TypeError(f"{type(layer).__name__} is no layer of a Glow.")


def _coupling(graph, x, layer, width):
    """Add a coupling, additive or affine."""
    from ..flows._layers import AFFINE_BOUND

    n_conditioning = layer.n_conditioning
    n_changed = width - n_conditioning
    if layer.conditions_on_last:
        changed, conditioning = graph.split(x, n_changed, n_conditioning)
    else:
        conditioning, changed = graph.split(x, n_conditioning, n_changed)
    hidden = conditioning
    for dense in layer.hidden:
        hidden = graph.node("Relu", _dense(graph, hidden, dense))
    shift = _dense(graph, hidden, layer.output)
    if layer.kind == "affine":
        shift, raw = graph.split(shift, n_changed, n_changed)
        bound = np.float32(AFFINE_BOUND)
        log_scale = graph.node("Mul", graph.node("Tanh", graph.node("Div", raw, bound)), bound)
        changed = graph.node("Mul", graph.node("Add", changed, shift), graph.node("Exp", log_scale))
    else:
        changed = graph.node("Add", changed, shift)
    parts = (changed, conditioning) if layer.conditions_on_last else (conditioning, changed)
    return graph.node("Concat", *parts, axis=1)


def _dense(graph, x, layer):
    """Add a dense layer with its scale."""
    scale = _scale(layer)
    product = graph.node("MatMul", x, layer.weight.numpy().T * scale)
    return graph.node("Add", product, scale * layer.bias.numpy())


def _scale(layer):
    from ..flows._layers import LOG_SCALE_FACTOR

    return (LOG_SCALE_FACTOR * layer.log_scale).exp().numpy()
