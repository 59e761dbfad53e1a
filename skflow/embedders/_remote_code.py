"""Code that the files of a model ask to run."""

from ._source import find_files, read_json

_OWN = "sentence_transformers."
# What skflow loads; entries for classifiers and the like are never used.
_LOADED = ("AutoConfig", "AutoModel", "AutoModelForTextEncoding")
# Functions between the modules of a checkpoint are torch's own.
_TORCH = "torch."


def check_no_remote_code(directory):
    """Check that a model asks for no classes but those of its libraries.

    sentence-transformers imports classes by name, and some of its versions run files of the checkpoint for it
    unasked. transformers ignores an ``auto_map`` beside a type that it knows, and runs its own class with
    whatever weights fit.

    Parameters
    ----------
    directory : pathlib.Path
        Directory of the model's files.

    Raises
    ------
    ValueError
        If it does; the message names the file and the class.
    """
    for path in find_files(directory)[0].values():
        for name in _class_names(path):
            if not str(name).startswith((_OWN, _TORCH)):
                raise ValueError(
                    f"{path} asks for the class {name!r}, which is no part of sentence-transformers or "
                    "transformers: its code could do anything, and runs only with trust_remote_code=True. "
                    "Read it first."
                )


def _class_names(path):
    """List the classes that a configuration file of sentence-transformers has imported by name."""
    if path.name not in ("modules.json", "router_config.json", "config.json") and not path.name.endswith(
        "_config.json"
    ):
        return []
    content = read_json(path)
    if path.name == "modules.json":
        modules = content if isinstance(content, list) else []
        return [module["type"] for module in modules if isinstance(module, dict) and "type" in module]
    if not isinstance(content, dict):
        return []
    names = []
    if isinstance(content.get("auto_map"), dict):
        names += [name for key, name in content["auto_map"].items() if key in _LOADED]
    # Those of a Router, or in older files an Asym.
    if isinstance(content.get("types"), dict):
        names += content["types"].values()
    # Those of a Dense and of WordEmbeddings, always dotted; transformers' own names are bare words.
    for key in ("activation_function", "tokenizer_class"):
        if "." in str(content.get(key, "")):
            names.append(content[key])
    return names
