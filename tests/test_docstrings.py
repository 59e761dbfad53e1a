"""Every public object says what it takes, gives and raises, has type hints, and an example that runs."""

import doctest
import importlib
import inspect
import pkgutil
import re
import sys

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

import skflow

MODULES = [
    "skflow",
    "skflow.calibrators",
    "skflow.datasets",
    "skflow.embedders",
    "skflow.evaluation",
    "skflow.exceptions",
    "skflow.export",
    "skflow.modules",
    "skflow.flows",
    "skflow.inspection",
    "skflow.metrics",
    "skflow.similarity",
]
# No docstring; wrong order, unknown, missing and undescribed parameters; no return value or no description.
CHECKS = {"GL08", "PR01", "PR02", "PR03", "PR07", "RT01", "RT03"}
# Made by the functions that return them, which have the examples, and never by a user.
RESULTS = {
    "CalibratorComparison",
    "CalibratorSuggestion",
    "Difference",
    "FrequencyBias",
    "Interval",
    "Isotropy",
    "IsotropyReport",
    "LexicalOverlap",
    "Normality",
    "PairsResult",
    "STSResult",
}
RAISES_NOTHING = {"load_published_sts"}
# sentence-transformers' modules: what the methods take and give is theirs to say.
PROTOCOL = {"CalibrationModule", "LayeredEncoder", "TokenPooling", "Truncation"}
# What implements somebody's method names it: author, year, arXiv number, DOI or proceedings.
SOURCE = re.compile(r"\b(18|19|20)\d\d\b")
IMPLEMENTS = {
    "BertEmbedder",
    "Glow",
    "NATSVCalibrator",
    "NormalizingFlowCalibrator",
    "StandardNormalizationCalibrator",
    "WhiteningCalibrator",
    "WordVectorEmbedder",
    "alignment",
    "average_cosine",
    "effective_rank",
    "evaluate_sts",
    "frequency_bias",
    "isoscore",
    "lexical_overlap",
    "partition_isotropy",
    "pearson_score",
    "spearman_score",
    "uniformity",
}


def public_objects():
    """Return name -> class or function of everything that a public module exports."""
    found = {}
    for name in MODULES:
        module = importlib.import_module(name)
        names = getattr(module, "__all__", None) or [
            n for n, o in vars(module).items() if getattr(o, "__module__", None) == name and n[0] != "_"
        ]
        for n in names:
            exported = getattr(module, n)
            if inspect.isclass(exported) or inspect.isfunction(exported):
                found[exported.__name__] = exported
    return found


OBJECTS = public_objects()
FUNCTIONS = {name: o for name, o in OBJECTS.items() if inspect.isfunction(o)}
CLASSES = {name: o for name, o in OBJECTS.items() if inspect.isclass(o)}


def public_methods(cls):
    """Yield name and function of the methods that skflow defines, its own base classes' among them."""
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        function = getattr(member, "__func__", member)
        is_ours = str(getattr(function, "__module__", "")).startswith("skflow")
        if name[0] != "_" and inspect.isfunction(function) and is_ours and name == function.__name__:
            yield name, function


METHODS = {f"{c}.{n}": (cls, f) for c, cls in CLASSES.items() for n, f in public_methods(cls)}


def errors_of(path):
    return [f"{code}: {text}" for code, text in validate(path)["errors"] if code in CHECKS]


def path_of(exported):
    return f"{exported.__module__}.{exported.__qualname__}"


def parameters_of(function):
    return [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]


def check_parameters(function, doc):
    """Check that the type of each parameter is given, and its default, unless told elsewhere."""
    described = {n.lstrip("*"): p for p in doc["Parameters"] for n in p.name.replace(" ", "").split(",")}
    for parameter in parameters_of(function):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        entry = described[parameter.name]
        if re.match(r"(As in|See) ", " ".join(entry.desc)) or entry.type == "None":
            continue
        assert entry.type, f"{parameter.name} has no type"
        if parameter.default is not parameter.empty:
            assert "default=" in entry.type, f"{parameter.name} : {entry.type} does not give its default"


def check_hints(function):
    hints = function.__annotations__
    assert "return" in hints, "no hint of what is returned"
    assert [p.name for p in parameters_of(function) if p.name not in hints] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    function = FUNCTIONS[name]
    doc = NumpyDocString(inspect.getdoc(function))
    assert errors_of(path_of(function)) == []
    check_parameters(function, doc)
    check_hints(function)
    assert name in RAISES_NOTHING or doc["Raises"]
    assert f"{name}(" in "\n".join(doc["Examples"])


@pytest.mark.parametrize("name", CLASSES)
def test_class(name):
    cls = CLASSES[name]
    doc = NumpyDocString(inspect.getdoc(cls))
    assert doc["Summary"]
    if name in RESULTS:
        return
    init = cls.__init__
    if inspect.isfunction(init) and init.__module__.startswith("skflow"):
        assert errors_of(path_of(cls)) == []
        check_parameters(init, doc)
        check_hints(init)
    assert f"{name}(" in "\n".join(doc["Examples"]) or f"{name}.from_" in "\n".join(doc["Examples"])


@pytest.mark.parametrize("name", METHODS)
def test_method(name):
    cls, function = METHODS[name]
    doc = NumpyDocString(inspect.getdoc(function))
    check_hints(function)
    if cls.__name__ in PROTOCOL:
        assert doc["Summary"]
        return
    assert errors_of(path_of(function)) == []
    check_parameters(function, doc)
    assert doc["Raises"]
    examples = [*doc["Examples"], *NumpyDocString(inspect.getdoc(cls))["Examples"]]
    if cls.__name__ not in RESULTS:
        assert re.search(rf"\.{function.__name__}\(", "\n".join(examples)), "no example calls it"


@pytest.mark.parametrize("name", sorted(IMPLEMENTS))
def test_source_is_named(name):
    assert re.search(SOURCE, inspect.getdoc(OBJECTS[name]))


def test_properties_are_described():
    for cls in CLASSES.values():
        for name, member in inspect.getmembers_static(cls, lambda member: isinstance(member, property)):
            if name[0] != "_" and member.fget.__module__.startswith("skflow"):
                assert inspect.getdoc(member.fget), f"{cls.__name__}.{name}"
                assert "return" in member.fget.__annotations__, f"{cls.__name__}.{name}"


def module_names():
    return [m.name for m in pkgutil.walk_packages(skflow.__path__, "skflow.")]


@pytest.mark.parametrize("name", module_names())
def test_examples_run(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    assert results.failed == 0


def test_no_example_is_skipped_but_the_download():
    sources = {name: inspect.getsource(importlib.import_module(name)) for name in module_names()}
    assert [n for n, s in sources.items() if "doctest: +SKIP" in s] == ["skflow.datasets._fetch"]
