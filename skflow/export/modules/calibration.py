"""A fitted calibrator as a module of sentence-transformers."""

from typing import Any, Self

import torch
from torch import nn

from ...calibrators import NormalizingFlowCalibrator
from ...calibrators._base import BaseCalibrator
from .._linear import linear_operations
from .._steps import check_calibrators, flatten
from ._base import FullPrecision, Module


class _LinearMap(nn.Module):
    """The operations of a closed-form calibrator."""

    def __init__(self, calibrator):
        super().__init__()
        _, operations = linear_operations(calibrator)
        self.kinds = [kind for kind, _ in operations]
        for i, (_, operand) in enumerate(operations):
            self.register_buffer(f"operand{i}", torch.tensor(operand))

    def forward(self, x):
        x = x.to(self.operand0.dtype)
        for i, kind in enumerate(self.kinds):
            operand = getattr(self, f"operand{i}")
            if kind == "subtract":
                x = x - operand
            elif kind == "divide":
                x = x / operand
            elif kind == "multiply":
                x = x @ operand
            else:  # deflate
                x = x - (x @ operand.T) @ operand
        return x


class _FlowMap(nn.Module):
    """A normalizing flow, from vectors to latents."""

    def __init__(self, calibrator):
        super().__init__()
        self.flow = calibrator.flow_.float().requires_grad_(False)
        frame = calibrator._frame
        self.is_scaled = frame.is_scaled
        if self.is_scaled:
            self.register_buffer("offset", torch.tensor(frame.offset))
            self.register_buffer("scale", torch.tensor(frame.scale))
        self.is_whitened = frame.stage is not None
        if self.is_whitened:
            self.register_buffer("mean", torch.tensor(frame.stage["mean"]))
            self.register_buffer("whiten", torch.tensor(frame.input_matrix))
            self.register_buffer("restore", torch.tensor(frame.output_matrix))

    def forward(self, x):
        if self.is_scaled:
            x = (x.to(self.offset.dtype) - self.offset) / self.scale
        if self.is_whitened:
            x = (x.to(self.mean.dtype) - self.mean) @ self.whiten
        latent = self.flow(x.float())[0]
        return latent.to(self.restore.dtype) @ self.restore if self.is_whitened else latent


class CalibrationModule(FullPrecision, Module):
    """Calibrate sentence vectors inside a :class:`sentence_transformers.SentenceTransformer`.

    It does in torch, on whatever device the model is, what the calibrator's `transform` does to float32
    input, and always returns float32. Its parameters are not trained.

    Parameters
    ----------
    calibrator : estimator
        Fitted NormalizingFlowCalibrator, WhiteningCalibrator, NATSVCalibrator or
        StandardNormalizationCalibrator. It is kept, and saved by its `save_pretrained` as safetensors and
        JSON; the module's directory can be given to `from_pretrained` of the calibrator as well.

    Raises
    ------
    TypeError
        If `calibrator` is none of these.
    ValueError
        If it is a flow built by a callable.
    NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from skflow.calibrators import StandardNormalizationCalibrator
    >>> from skflow.export.modules import CalibrationModule
    >>> module = CalibrationModule(StandardNormalizationCalibrator().fit(np.array([[1.0], [3.0]])))
    >>> module({"sentence_embedding": torch.tensor([[5.0]])})["sentence_embedding"]
    tensor([[3.]])
    """

    def __init__(self, calibrator: Any) -> None:
        super().__init__()
        check_calibrators(flatten(calibrator))
        self.calibrator = calibrator
        is_flow = isinstance(calibrator, NormalizingFlowCalibrator)
        self.map = _FlowMap(calibrator) if is_flow else _LinearMap(calibrator)

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Replace the entry "sentence_embedding", of shape (n_texts, n_features)."""
        features["sentence_embedding"] = self.map(features["sentence_embedding"].float()).float()
        return features

    def get_embedding_dimension(self) -> int:
        """Return the number of output features."""
        return self.calibrator._n_features_out

    # The name of this method in sentence-transformers before 5.4.
    get_sentence_embedding_dimension = get_embedding_dimension

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Save the calibrator in a directory, as safetensors and JSON whatever `safe_serialization` says."""
        self.calibrator.save_pretrained(output_path)

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: str | bool | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        **kwargs: Any,
    ) -> Self:
        """Load the module from a directory or from a model on the Hugging Face hub."""
        directory = cls.load_dir_path(
            model_name_or_path,
            subfolder=subfolder,
            token=token,
            cache_folder=cache_folder,
            revision=revision,
            local_files_only=local_files_only,
        )
        return cls(BaseCalibrator.from_pretrained(directory))

    def __repr__(self):
        return f"CalibrationModule({self.calibrator!r})"
