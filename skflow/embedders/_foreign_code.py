"""Code that the files of a model ask to run."""

import json

_OWN = "sentence_transformers."
# Functions between the modules of a checkpoint are torch's own.
_TORCH = "torch."


def check_no_foreign_code(directory):
    """Check that a sentence-transformers checkpoint asks for no classes but those of its library and torch.

    The library itself imports such classes by name, and some of its versions run files of the checkpoint for
    it unasked. Code that transformers would run, named in an ``auto_map``, is refused by transformers.

    Parameters
    ----------
    directory : pathlib.Path
        Directory of the model's files.

    Raises
    ------
    ValueError
        If it does; the message names the file and the class.
    """
    for path in sorted(directory.rglob("*.json")):
        for name in _class_names(path):
            if not str(name).startswith((_OWN, _TORCH)):
                raise ValueError(
                    f"{path} asks for the class {name!r}, which is no part of sentence-transformers: its "
                    "code could do anything, and runs only with trust_remote_code=True. Read it first."
                )


def _class_names(path):
    """List the classes that a configuration file of sentence-transformers has imported by name."""
    if path.name not in ("modules.json", "router_config.json", "config.json") and not path.name.endswith(
        "_config.json"
    ):
        return []
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []  # whoever loads the file says what is wrong with it
    if path.name == "modules.json":
        modules = content if isinstance(content, list) else []
        return [module["type"] for module in modules if isinstance(module, dict) and "type" in module]
    if not isinstance(content, dict):
        return []
    names = []
    # Those of a Router, or in older files an Asym.
    if isinstance(content.get("types"), dict):
        names += content["types"].values()
    # Those of a Dense and of WordEmbeddings, always dotted; transformers' own names are bare words.
    for key in ("activation_function", "tokenizer_class"):
        if "." in str(content.get(key, "")):
            names.append(content[key])
    return names
