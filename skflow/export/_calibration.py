"""A fitted calibrator as a module of sentence-transformers."""

from typing import Any, Self

import numpy as np
import torch
from torch import nn

from ..calibrators._base import BaseCalibrator
from ..modules._library import FullPrecision, Module, location
from ._steps import check_calibrators, flatten, n_features_out


class Operations(nn.Module):
    """The operations of a calibrator, in torch: see `BaseCalibrator.__skflow_operations__`."""

    def __init__(self, dtype, operations):
        super().__init__()
        self.kinds = [kind for kind, _ in operations]
        for i, (kind, operand) in enumerate(operations):
            if kind == "flow":
                self.add_module(f"operand{i}", operand.float().requires_grad_(False))
            else:
                self.register_buffer(f"operand{i}", torch.tensor(np.asarray(operand, dtype=dtype)))

    def forward(self, x):
        for i, kind in enumerate(self.kinds):
            a = getattr(self, f"operand{i}")
            x = x.float() if kind == "flow" else x.to(a.dtype)
            match kind:
                case "subtract":
                    x = x - a
                case "divide":
                    x = x / a
                case "multiply":
                    x = x @ a
                case "deflate":
                    x = x - (x @ a.T) @ a
                case "flow":
                    x = a(x)[0]
        return x


class CalibrationModule(FullPrecision, Module):
    """Calibrate sentence vectors inside a :class:`sentence_transformers.SentenceTransformer`.

    It does in torch, on whatever device the model is, what the calibrator's `transform` does to float32
    input, and always returns float32. Its parameters are not trained.

    Parameters
    ----------
    calibrator : estimator
        A fitted calibrator of skflow. It is kept, and saved by its `save_pretrained` as safetensors and
        JSON; the module's directory can be given to `from_pretrained` of the calibrator as well.

    Raises
    ------
    TypeError
        If `calibrator` is something else.
    ValueError
        If it is a flow built by a callable.
    NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from skflow.calibrators import StandardNormalizationCalibrator
    >>> from skflow.export import CalibrationModule
    >>> module = CalibrationModule(StandardNormalizationCalibrator().fit(np.array([[1.0], [3.0]])))
    >>> module({"sentence_embedding": torch.tensor([[5.0]])})["sentence_embedding"]
    tensor([[3.]])
    """

    def __init__(self, calibrator: Any) -> None:
        super().__init__()
        check_calibrators(flatten(calibrator))
        self.calibrator = calibrator
        self.map = Operations(*calibrator.__skflow_operations__())

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Replace the entry "sentence_embedding", of shape (n_texts, n_features)."""
        features["sentence_embedding"] = self.map(features["sentence_embedding"].float()).float()
        return features

    def get_embedding_dimension(self) -> int:
        """Return the number of output features."""
        return n_features_out(self.calibrator)

    # The name of this method in sentence-transformers before 5.4.
    get_sentence_embedding_dimension = get_embedding_dimension

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Save the calibrator in a directory, as safetensors and JSON whatever `safe_serialization` says."""
        self.calibrator.save_pretrained(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> Self:
        """Load the module from a directory or from a model on the Hugging Face hub."""
        directory = cls.load_dir_path(model_name_or_path, **location(kwargs))
        return cls(BaseCalibrator.from_pretrained(directory))

    def __repr__(self):
        return f"CalibrationModule({self.calibrator!r})"


# The import path that a saved model names.
CalibrationModule.__module__ = "skflow.export"
