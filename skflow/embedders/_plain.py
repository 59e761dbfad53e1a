"""Loading of plain transformers."""

import contextlib
import json

import torch

# What files of vocabularies are called.
_VOCABULARIES = ("tokenizer*.json", "vocab*", "merges.txt", "*.model", "*.codes", "*.tiktoken", "tekken.json")


def load_plain(directory, device, dtype, options):
    """Load an encoder that is no sentence-transformers checkpoint.

    Parameters
    ----------
    directory : pathlib.Path
        Its files.
    device : str
        Device of torch.
    dtype : {"float32", "float16", "bfloat16"}
        Type of the weights.
    options : dict
        Passed on to transformers.

    Returns
    -------
    model : transformers.PreTrainedModel
        The encoder, in evaluation mode.
    tokenizer : transformers.PreTrainedTokenizerBase
        Its tokenizer.
    missing : list of str
        Parameters of the encoder that the files lack, which are random.
    is_part : bool
        Whether the encoder is that of an encoder-decoder.

    Raises
    ------
    FileNotFoundError
        If there are no files of a tokenizer.
    """
    from transformers import AutoConfig, AutoTokenizer

    config = AutoConfig.from_pretrained(str(directory), **options)
    with clear_about_tokenizers(directory):
        tokenizer = AutoTokenizer.from_pretrained(str(directory), **options)
    check_tokenizer_files(tokenizer, directory)
    model, report = _model_class(config).from_pretrained(
        str(directory), output_loading_info=True, **dtype_option(dtype), **options
    )
    missing = sorted(report["missing_keys"])
    is_part = model.config.is_encoder_decoder
    if is_part:
        missing = [key.removeprefix("encoder.") for key in missing if not key.startswith("decoder.")]
        model = model.get_encoder()
    return model.eval().to(device), tokenizer, missing, is_part


def load_whole(directory, device, dtype, options):
    """Load an encoder-decoder whole, as it can be saved: see :func:`load_plain`."""
    from transformers import AutoModel

    return AutoModel.from_pretrained(str(directory), **options, **dtype_option(dtype)).to(device)


def _model_class(config):
    """Choose the class to load: files may hold the encoder of an encoder-decoder alone, such as T5's."""
    from transformers import MODEL_FOR_TEXT_ENCODING_MAPPING, AutoModel, AutoModelForTextEncoding

    kind = type(config)
    if config.is_encoder_decoder or kind not in MODEL_FOR_TEXT_ENCODING_MAPPING:
        return AutoModel
    is_half = MODEL_FOR_TEXT_ENCODING_MAPPING[kind].__name__.endswith("EncoderModel")
    return AutoModelForTextEncoding if is_half else AutoModel


@contextlib.contextmanager
def clear_about_tokenizers(directory):
    """Say that there are no files of a tokenizer, where an error of transformers comes from that."""
    try:
        yield
    except Exception as error:  # which one it is depends on the class and the version
        files = (path for pattern in _VOCABULARIES for path in directory.rglob(pattern))
        if "trust_remote_code" in str(error) or any(path.name != "tokenizer_config.json" for path in files):
            raise
        raise FileNotFoundError(
            f"{directory} has no tokenizer files: it lacks tokenizer.json, and any other vocabulary."
        ) from error


@contextlib.contextmanager
def clear_about_nesting(directory):
    """Say which file is nested too deeply, where an error of loading comes from that."""
    try:
        yield
    except RecursionError as error:
        for path in sorted(directory.rglob("*.json")):
            try:
                json.loads(path.read_bytes())
            except RecursionError:
                raise ValueError(f"{path} is nested too deeply to be read: is it damaged?") from error
            except ValueError:
                continue
        raise


def check_tokenizer_files(tokenizer, directory):
    """Check that a tokenizer had files to be loaded from; without them, some versions make up an empty one.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
        The tokenizer.
    directory : pathlib.Path
        Where it was loaded from.

    Raises
    ------
    FileNotFoundError
        If its vocabulary is in none of the files that its class reads.
    """
    names = dict(getattr(tokenizer, "vocab_files_names", {}))
    if not names:  # a tokenizer of bytes or characters
        return
    # One file may hold all, under names of several libraries.
    whole = {
        names.pop("tokenizer_file", "tokenizer.json"),
        "tokenizer.json",
        "tokenizer.model",
        "tekken.json",
    }
    needed = [names[key] for key in ("vocab_file", "merges_file") if key in names]
    if any((directory / name).is_file() for name in whole) or any(directory.glob("tokenizer.*.json")):
        return
    missing = [name for name in needed if not (directory / name).is_file()]
    if missing or not needed:
        expected = " and ".join(needed)
        raise FileNotFoundError(
            f"{directory} has no tokenizer files: it lacks tokenizer.json{' and ' if missing else ''}"
            f"{' and '.join(missing)}; expected tokenizer.json{' or ' + expected if expected else ''}."
        )


def dtype_option(dtype):
    import transformers

    version = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    return {"dtype" if version >= (4, 56) else "torch_dtype": getattr(torch, dtype)}


@contextlib.contextmanager
def missing_weights():
    """Collect, within a with block, the parameters that files of models loaded by anybody lack."""
    from transformers import PreTrainedModel

    original = vars(PreTrainedModel)["from_pretrained"]
    missing = []

    def from_pretrained(cls, *args, output_loading_info=False, **kwargs):
        model, report = original.__func__(cls, *args, output_loading_info=True, **kwargs)
        missing.extend(report["missing_keys"])
        return (model, report) if output_loading_info else model

    # sentence-transformers has no way to ask for the report.
    PreTrainedModel.from_pretrained = classmethod(from_pretrained)
    try:
        yield missing
    finally:
        PreTrainedModel.from_pretrained = original
