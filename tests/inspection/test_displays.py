"""Displays follow scikit-learn's convention and draw what they are given."""

import subprocess
import sys
from inspect import signature

import numpy as np
import pytest
from scipy.stats import ConstantInputWarning
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from skflow import inspection
from skflow.calibrators import NormalizingFlowCalibrator, StandardNormalizationCalibrator, WhiteningCalibrator
from skflow.inspection import (
    CalibratorComparisonDisplay,
    FrequencyNormDisplay,
    LatentDistributionDisplay,
    LexicalOverlapDisplay,
    LossCurveDisplay,
    SimilarityDisplay,
    SingularValueDisplay,
    frequency_bias,
)
from skflow.metrics import spearman_score
from skflow.similarity import CosineSimilarityRegressor

pytest.importorskip("matplotlib")
N = 40
PAIRS = [(f"{i} and and", str(N + i) + " and" * (i % 6)) for i in range(N)]


@pytest.fixture(name="Z")
def latent(rng):
    return rng.standard_normal((2 * N, 6)) + 1


@pytest.fixture
def gold(rng):
    return rng.uniform(0, 5, size=N)


@pytest.fixture
def models(lookup, Z):
    return {
        "raw": CosineSimilarityRegressor(lookup(Z)).fit(PAIRS),
        "SN": CosineSimilarityRegressor(make_pipeline(lookup(Z), StandardNormalizationCalibrator())).fit(
            PAIRS
        ),
    }


def frequency_result(tiny_embedder):
    return frequency_bias(tiny_embedder("bert"), {"the": 9, "cat": 4, "dog": 2}, bins=(1, 3), neighbors=(1,))


def makers(tiny_embedder, models, Z, gold):
    """A function for every display that makes it on given axes."""
    predictions = {name: model.predict(PAIRS) for name, model in models.items()}
    return {
        "similarity": lambda ax: SimilarityDisplay.from_predictions(gold, predictions, ax=ax),
        "latent": lambda ax: LatentDistributionDisplay.from_vectors(Z, ax=ax),
        "spectrum": lambda ax: SingularValueDisplay.from_vectors(Z, ax=ax),
        "frequency": lambda ax: FrequencyNormDisplay.from_result(frequency_result(tiny_embedder), ax=ax),
        "loss": lambda ax: LossCurveDisplay.from_result([3.0, 2.0, 1.0], [1.5], ax=ax),
        "lexical": lambda ax: LexicalOverlapDisplay.from_predictions(PAIRS, predictions, gold, ax=ax),
        "comparison": lambda ax: CalibratorComparisonDisplay.from_predictions(gold, predictions, ax=ax),
    }


@pytest.mark.parametrize(
    "name", ["similarity", "latent", "spectrum", "frequency", "loss", "lexical", "comparison"]
)
def test_convention(name, tiny_embedder, models, Z, gold, axes):
    plt = sys.modules["matplotlib.pyplot"]
    if name == "lexical":
        pytest.importorskip("rapidfuzz")
    make = makers(tiny_embedder, models, Z, gold)[name]
    figures = plt.get_fignums()
    display = make(axes)
    assert display.ax_ is axes
    assert display.figure_ is axes.figure
    assert plt.get_fignums() == figures
    panels = getattr(display, "axes_", [display.ax_])
    assert all(ax.get_xlabel() for ax in panels)
    assert panels[0].get_ylabel()
    display.figure_.canvas.draw()  # nothing of it raises or warns
    assert display.plot() is display
    assert display.ax_ is not axes
    assert display.figure_.number not in figures


def test_similarity(models, gold, axes):
    display = SimilarityDisplay.from_estimator(models, PAIRS, gold, ax=axes)
    predictions = models["SN"].predict(PAIRS)
    np.testing.assert_array_equal(display.y_pred["SN"], predictions)
    np.testing.assert_allclose(display.scatter_[1].get_offsets(), np.column_stack([gold, predictions]))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"{100 * spearman_score(gold, predictions):.1f}" in labels[1]
    assert len(display.density_) == 2


def test_similarity_of_one_model_is_named_after_it(models, gold, axes):
    display = SimilarityDisplay.from_estimator(models["raw"], PAIRS, gold, ax=axes, scatter_kwargs={"c": "k"})
    assert list(display.y_pred) == ["CosineSimilarityRegressor"]


def test_similarity_subsample(models, gold, axes):
    display = SimilarityDisplay.from_estimator(models, PAIRS, gold, subsample=10, random_state=0, ax=axes)
    first, second = (scatter.get_offsets() for scatter in display.scatter_)
    assert len(first) == 10
    np.testing.assert_array_equal(first[:, 0], second[:, 0])  # the same pairs
    assert len(display.plot(subsample=0.25).scatter_[0].get_offsets()) == 10
    assert len(display.plot(subsample=None).scatter_[0].get_offsets()) == N
    for subsample in (0, -3, 1.5, True):
        with pytest.raises(ValueError, match="subsample must be"):
            display.plot(subsample=subsample)


def test_constant_similarity_and_one_pair_can_be_drawn(axes):
    with pytest.warns(ConstantInputWarning):
        SimilarityDisplay.from_predictions([1, 2, 3], [0.5, 0.5, 0.5], ax=axes)
    with pytest.warns(UserWarning, match="fewer than two"):
        SimilarityDisplay.from_predictions([1], [0.5])


def test_similarity_errors(gold):
    with pytest.raises(ValueError, match=r"short has 3 similarities"):
        SimilarityDisplay.from_predictions(gold, {"short": [1, 2, 3]})
    with pytest.raises(ValueError, match="empty mapping"):
        SimilarityDisplay.from_predictions(gold, {})
    with pytest.raises(ValueError, match="NaN"):
        SimilarityDisplay.from_predictions([np.nan, 1], [0, 1])


def test_latent(Z, axes):
    calibrator = StandardNormalizationCalibrator().fit(Z)
    display = LatentDistributionDisplay.from_estimator(calibrator, Z, bins=8, ax=axes)
    latent = calibrator.transform(Z)
    np.testing.assert_array_equal(display.vectors, latent)
    densities = [np.histogram(column, np.linspace(-4, 4, 9), density=True)[0] for column in latent.T]
    np.testing.assert_allclose(display.line_.get_ydata(), np.median(densities, axis=0))
    assert display.gaussian_.get_ydata().max() == pytest.approx(np.exp(-0.125) / np.sqrt(2 * np.pi))
    assert "StandardNormalizationCalibrator" in axes.get_legend().get_texts()[0].get_text()
    assert display.plot(plot_gaussian=False).gaussian_ is None


def test_spectrum(Z, axes):
    calibrator = WhiteningCalibrator(strength=1.0).fit(Z)
    display = SingularValueDisplay.from_estimator({"whitening": calibrator}, Z, ax=axes)
    assert list(display.shares) == ["raw", "whitening"]
    squares = np.linalg.svd(Z, compute_uv=False) ** 2
    np.testing.assert_allclose(display.lines_[0].get_ydata(), 100 * squares / squares.sum())
    np.testing.assert_allclose(display.lines_[1].get_ydata(), 100 / 6)
    with pytest.raises(ValueError, match="all zero"):
        SingularValueDisplay.from_vectors(np.zeros((3, 2)))


def test_frequency(tiny_embedder, axes):
    result = frequency_result(tiny_embedder)
    display = FrequencyNormDisplay.from_estimator(
        tiny_embedder("bert"), {"the": 9, "cat": 4, "dog": 2}, (1, 3), neighbors=(1,), ax=axes
    )
    np.testing.assert_allclose(display.scatter_.get_offsets(), np.column_stack([[1, 2, 3], result.norms]))
    np.testing.assert_allclose([line.get_ydata()[0] for line in display.lines_], result.mean_norm)
    with pytest.raises(TypeError, match="must be a FrequencyBias"):
        FrequencyNormDisplay.from_result([1.0, 2.0])


def test_loss(Z, axes):
    flow = NormalizingFlowCalibrator(
        max_epochs=3, batch_size=20, early_stopping=True, validation_fraction=0.2, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="went from"):  # of Gaussian features nothing is to be learned
        flow.fit(Z)
    display = LossCurveDisplay.from_estimator(make_pipeline(flow), window=2, ax=axes)
    np.testing.assert_array_equal(display.line_.get_ydata(), flow.loss_curve_)
    np.testing.assert_allclose(display.average_.get_ydata()[0], flow.loss_curve_[:2].mean())
    # Nats a row, negated, in bits of each of six dimensions.
    np.testing.assert_allclose(
        display.validation_.get_ydata(), -flow.validation_scores_ / (6 * np.log(2)), rtol=1e-6
    )
    with pytest.raises(ValueError, match="window must be"):
        display.plot(window=100)
    with pytest.raises(ValueError, match="loss_curve_"):
        LossCurveDisplay.from_estimator(NormalizingFlowCalibrator())


def test_loss_without_an_update_says_so(Z):
    flow = NormalizingFlowCalibrator(max_epochs=0, random_state=0).fit(Z)
    with pytest.raises(ValueError, match="a fit with max_epochs=0 has made no update"):
        LossCurveDisplay.from_estimator(flow)


def test_an_update_that_was_left_out_is_a_gap(axes):
    display = LossCurveDisplay.from_result([3.0, np.nan, 1.0, np.inf, np.inf], window=2, ax=axes)
    np.testing.assert_array_equal(display.line_.get_ydata(), [3, np.nan, 1, np.nan, np.nan])
    np.testing.assert_array_equal(display.average_.get_ydata(), [3, 1, 1, np.nan])


@pytest.mark.parametrize("kwargs", [{"c": "k"}, {"color": "k"}, {"facecolors": "k"}, {"fc": "k"}])
def test_scatter_takes_every_name_of_a_color(kwargs, axes):
    display = SimilarityDisplay.from_predictions([0, 2, 5], [0.9, 0.8, 0.95], scatter_kwargs=kwargs, ax=axes)
    np.testing.assert_array_equal(display.scatter_[0].get_facecolor()[0][:3], [0, 0, 0])


def test_line_takes_every_name_of_a_property(axes):
    display = LossCurveDisplay.from_result([3.0, 2.0], line_kwargs={"c": "k", "lw": 5, "ls": ":"}, ax=axes)
    line = display.line_
    assert (line.get_color(), line.get_linewidth(), line.get_linestyle()) == ("k", 5, ":")


def test_lexical(models, gold, axes):
    pytest.importorskip("rapidfuzz")
    pairs = [("a b c d e f", "a b c d e f"), ("a b c d e f", "a"), ("a", "b")]
    display = LexicalOverlapDisplay.from_predictions(pairs, [0.9, 0.5, 0.1], [5, 2, 1], max_distance=4)
    assert [len(scatter.get_offsets()) for scatter in display.close_] == [2, 2]
    assert [len(scatter.get_offsets()) for scatter in display.others_] == [1, 1]
    np.testing.assert_allclose(np.sort(display.close_[1].get_offsets()[:, 0]), [0.1, 0.9])
    assert len(LexicalOverlapDisplay.from_estimator(models, PAIRS, gold).axes_) == 3
    plt = pytest.importorskip("matplotlib.pyplot")
    _, panels = plt.subplots(1, 2)
    assert display.plot(ax=panels).ax_ is panels[0]
    with pytest.raises(ValueError, match="holds 2 axes; expected 3"):
        LexicalOverlapDisplay.from_estimator(models, PAIRS, gold, ax=panels)


def test_comparison(models, gold, axes):
    groups = np.array(["a", "b"] * (N // 2), dtype=object)
    display = CalibratorComparisonDisplay.from_estimator(models, PAIRS, gold, groups=groups, ax=axes)
    assert display.names == ["raw", "SN"]
    assert display.columns == ["a", "b", "all pairs"]
    predicted = models["SN"].predict(PAIRS)
    expected = 100 * spearman_score(gold[groups == "b"], predicted[groups == "b"])
    assert display.values[1, 1] == pytest.approx(expected)
    assert display.text_[1, 1].get_text() == f"{expected:.1f}"
    np.testing.assert_allclose(display.image_.get_array(), display.values - display.values[0])


def test_comparison_of_tasks(axes):
    figures = {"raw": {"stsb": 60.0, "sickr": 50.0}, "flow": {"stsb": 70.0, "sickr": np.nan}}
    display = CalibratorComparisonDisplay.from_result(figures, colorbar=False)
    np.testing.assert_array_equal(display.values, [[60, 50, 55], [70, np.nan, np.nan]])
    assert display.text_[1, 2].get_text() == "-"
    assert display.colorbar_ is None
    with pytest.raises(ValueError, match="same tasks"):
        CalibratorComparisonDisplay.from_result({"raw": {"stsb": 1.0}, "flow": {"sickr": 1.0}})
    with pytest.raises(ValueError, match="empty"):
        CalibratorComparisonDisplay.from_result({})
    with pytest.raises(TypeError, match="mapping"):
        CalibratorComparisonDisplay.from_predictions([1, 2], [0.1, 0.2])


@pytest.mark.parametrize("name", [name for name in inspection.__all__ if name.endswith("Display")])
def test_without_matplotlib_the_error_names_the_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    display = getattr(inspection, name)
    for constructor in [method for method in dir(display) if method.startswith("from_")]:
        make = getattr(display, constructor)
        needed = [p for p in signature(make).parameters.values() if p.default is p.empty and p.kind.value < 2]
        with pytest.raises(
            ImportError, match=rf"{name}.{constructor} requires .*scikit-bertflow\[inspection\]"
        ):
            make(*[None] * len(needed))


def test_importing_the_package_loads_neither_matplotlib_nor_the_extras():
    code = (
        "import sys, skflow.inspection; "
        "print([m for m in ('matplotlib', 'rapidfuzz', 'wordfreq', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["similarity", "latent", "spectrum", "frequency", "loss"])
def test_two_on_the_same_axes_have_colors_of_their_own(name, tiny_embedder, models, Z, gold, axes):
    from matplotlib.colors import to_hex

    make = makers(tiny_embedder, models, Z, gold)[name]
    attributes = ("scatter_", "line_", "lines_", "average_", "validation_")

    def colors():
        display = make(axes)
        found = [np.atleast_1d(getattr(display, a, [])).tolist() for a in attributes]
        artists = [artist for each in found for artist in each]
        return {to_hex(a.get_color() if hasattr(a, "get_color") else a.get_facecolor()[0]) for a in artists}

    first, second = colors(), colors()
    assert first
    assert second
    assert not first & second


def test_names_of_loss_curves(axes):
    for name in ("one", "two"):
        LossCurveDisplay.from_result([3.0, 2.0], [1.5], name=name, ax=axes)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [label.split(":")[0] for label in labels] == ["one"] * 3 + ["two"] * 3


def test_lexical_on_axes_without_a_grid(gold):
    pytest.importorskip("rapidfuzz")
    import matplotlib.pyplot as plt

    axes = plt.figure().add_axes((0.1, 0.1, 0.8, 0.7))
    display = LexicalOverlapDisplay.from_predictions(PAIRS, gold, ax=axes)
    assert display.axes_.tolist() == [display.ax_] == [axes]
    display = LexicalOverlapDisplay.from_predictions(PAIRS, {"a": gold, "b": -gold}, gold, ax=axes)
    assert len(display.axes_) == 3
    assert display.ax_ is axes
    display.figure_.canvas.draw()


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_spectrum_at_any_scale(Z, scale, axes):
    shares = [SingularValueDisplay.from_vectors(X, ax=axes).shares["vectors"] for X in (Z, scale * Z)]
    np.testing.assert_allclose(*shares, rtol=1e-12)
