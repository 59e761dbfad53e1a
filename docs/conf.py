"""Sphinx configuration: `python -m sphinx -W --keep-going -n docs docs/_build/html`."""

import csv
import inspect
import os
import re
import statistics
import sys
import urllib.error
import urllib.request
from pathlib import Path

import matplotlib

import skflow
from skflow.datasets import load_published_sts

matplotlib.use("agg")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the examples' encoder is a Python package
sys.path.insert(0, str(Path(__file__).parent))

project = "skflow"
author = "skflow developers"
copyright = author
version = release = skflow.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "auto_examples/*.py.md5"]
default_role = "obj"
root_doc = "index"

html_theme = "pydata_sphinx_theme"
html_title = f"skflow {release}"
html_theme_options = {
    "navigation_depth": 3,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_end": [],
}
html_sidebars = {"changes": [], "contributing": []}
html_copy_source = False
html_show_sourcelink = False

# -- Docstrings ---------------------------------------------------------------------------------------------

autosummary_generate = True
autodoc_default_options = {"members": True, "inherited-members": True}
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # the docstrings say more: shapes, dtypes, units
numpydoc_show_class_members = False  # the class template lists them
numpydoc_class_members_toctree = False


def _defined_in(member):
    """Return the name of the module that a method or property comes from, or "" if it does not say."""
    member = getattr(member, "fget", None) or member
    return getattr(member, "__module__", None) or type(member).__module__ or ""


def skip_members(app, what, name, obj, skip, options):
    """Leave out what a class inherits from torch (fifty methods), and "Alias for field number 0"."""
    module = _defined_in(obj)
    if type(obj).__name__ == "_tuplegetter":  # a named tuple's field, which the docstring describes
        return True
    if module.startswith(("torch.", "sentence_transformers.", "builtins")) and inspect.isroutine(obj):
        return True
    return None


def shorten_docstring_of_sklearn(app, what, name, obj, options, lines):
    """Keep the summary of what comes from scikit-learn; the rest refers to labels of its own user guide."""
    if what in ("method", "property") and _defined_in(obj).startswith("sklearn."):
        inherited = name.rpartition(".")[2]
        summary = inspect.cleandoc("\n".join(lines)).split("\n\n")[0].splitlines()
        summary = [re.sub(r":ref:`([^`<]*?) *(<[^`>]*>)?`", r"\1", line) for line in summary]
        lines[:] = [*summary, "", f"See scikit-learn's documentation of ``{inherited}``.", ""]


def escape_shapes(app, what, name, obj, options, lines):
    """Keep names that end in an underscore from being read as links: "of shape (n_components_,)"."""
    for number, line in enumerate(lines):
        lines[number] = re.sub(r"shape \([^)`]*\)", lambda shape: shape[0].replace("_", r"\_"), line)


# -- Other projects' documentation --------------------------------------------------------------------------

_INVENTORIES = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "sklearn": "https://scikit-learn.org/stable/",
    "torch": "https://docs.pytorch.org/docs/stable/",
    "sentence_transformers": "https://sbert.net/",
}


def reachable_inventories(directory):
    """Download the inventories that can be had now: an unreachable one must not make the build fail."""
    found = {}
    if os.environ.get("SKFLOW_DOCS_OFFLINE"):
        return found
    directory.mkdir(parents=True, exist_ok=True)
    for name, url in _INVENTORIES.items():
        try:
            with urllib.request.urlopen(url + "objects.inv", timeout=5) as answer:
                (directory / f"{name}.inv").write_bytes(answer.read())
        except (urllib.error.URLError, OSError):
            print(f"no links to {url}: it cannot be reached")
        else:
            found[name] = (url, str(directory / f"{name}.inv"))
    return found


intersphinx_mapping = reachable_inventories(Path(__file__).parent / "_build" / "inventories")
intersphinx_timeout = 5
# A link to another project is plain text where its inventory could not be had; one to skflow must resolve.
nitpick_ignore_regex = [(r"py:.*", r"(?!skflow\b).*")]

# -- Tables -------------------------------------------------------------------------------------------------

_COLUMNS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")


def write_tables(app):
    """Write the tables of the reproduction page: published rows, then those of docs/sts_table.csv."""
    docs = Path(__file__).parent
    published = load_published_sts()
    with (docs / "sts_table.csv").open(newline="", encoding="utf-8") as file:
        measured = [row for row in csv.DictReader(file) if row["calibrator"] in _SHOWN]
    for name, (models, layers) in _TABLES.items():
        rows = [("encoder", "source", *_COLUMNS, "average")]
        for i, model in enumerate(published.model):
            source = published.source[i]
            if model.startswith(models) and source in ("Li2020", "Su2021"):
                figures = dict(zip(published.tasks, published.spearman[i].tolist(), strict=True))
                cells = [f"{figures[task]:.2f}" for task in _COLUMNS]
                average = f"{statistics.fmean(figures.values()):.2f}"
                is_tuned = "-NLI" in model
                if is_tuned == (name == "table3"):
                    rows.append((model, f"{source[:-4]} et al., Table {published.table[i]}", *cells, average))
        for row in measured:
            if row["layers"] in layers:
                encoder = f"all-MiniLM-L6-v2, {layers[row['layers']]}: {row['calibrator']}"
                rows.append((encoder, "here", *(row[task] for task in _COLUMNS), row["average"]))
        (docs / "generated").mkdir(exist_ok=True)
        with (docs / "generated" / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)


_SHOWN = ("raw", "whitening", "whitening, strength auto", "flow (3 seeds)", "flow, random order (3 seeds)")
_TABLES = {
    "table2": (("BERT-base", "BERT-large"), {"layer 0": "layer 0", "layer 4": "layer 4"}),
    "table3": (("BERT-base", "BERT-large"), {"last": "last layer (tuned)"}),
}

# -- Gallery ------------------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"^(?!plot_)",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("skflow",),
    "backreferences_dir": "generated/backreferences",
    "reference_url": {"skflow": None},
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib", "gallery_clock.clock"),
    "reset_modules_order": "both",
}


def setup(app):
    from gallery_clock import check_times

    app.connect("builder-inited", write_tables)
    app.connect("autodoc-skip-member", skip_members)
    app.connect("autodoc-process-docstring", shorten_docstring_of_sklearn, priority=100)
    app.connect("autodoc-process-docstring", escape_shapes, priority=900)  # after numpydoc
    app.connect("build-finished", check_times)
