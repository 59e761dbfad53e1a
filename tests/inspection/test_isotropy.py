"""The isotropy report puts together what is tested elsewhere."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning

from skflow.calibrators import NATSVCalibrator, StandardNormalizationCalibrator, WhiteningCalibrator
from skflow.inspection import isotropy_report, normality
from skflow.metrics import average_cosine, effective_rank, partition_isotropy


@pytest.fixture(name="X")
def vectors(rng):
    return rng.standard_normal((400, 5)) * [5, 3, 2, 1, 1] + 4


def test_figures(X):
    report = isotropy_report(X, {"SN": StandardNormalizationCalibrator()})
    assert list(report) == ["raw", "SN"]
    for name, Z in {"raw": X, "SN": StandardNormalizationCalibrator().fit_transform(X)}.items():
        row = report[name]
        squares = np.linalg.svd(Z, compute_uv=False) ** 2
        figures = normality(Z)
        assert row.top_singular_share == pytest.approx(squares[0] / squares.sum())
        assert row.average_cosine == pytest.approx(average_cosine(Z))
        assert row.partition_isotropy == pytest.approx(partition_isotropy(Z))
        assert row.effective_rank == pytest.approx(effective_rank(Z, center=True))
        assert row.median_ks == pytest.approx(np.median(figures.ks))
        assert row.median_abs_skewness == pytest.approx(np.median(np.abs(figures.skewness)))
        assert row.median_abs_excess_kurtosis == pytest.approx(np.median(np.abs(figures.excess_kurtosis)))


def test_whitening_is_isotropic(X):
    row = isotropy_report(X, {"whitening": WhiteningCalibrator(strength=1.0)})["whitening"]
    assert row.effective_rank == pytest.approx(5)
    assert row.top_singular_share == pytest.approx(1 / 5)
    assert row.average_cosine == pytest.approx(0, abs=0.01)


def test_calibrators_are_cloned_unless_they_are_fitted_already(X):
    calibrator = NATSVCalibrator()
    isotropy_report(X, {"NATSV": calibrator})
    assert not hasattr(calibrator, "n_features_in_")
    with pytest.raises(NotFittedError):
        isotropy_report(X, {"NATSV": calibrator}, prefit=True)
    elsewhere = StandardNormalizationCalibrator().fit(X + 100)
    row = isotropy_report(X, {"SN": elsewhere}, prefit=True)["SN"]
    assert row.average_cosine == pytest.approx(average_cosine(elsewhere.transform(X)))


def test_float32(X):
    wide, narrow = isotropy_report(X)["raw"], isotropy_report(X.astype(np.float32))["raw"]
    np.testing.assert_allclose(list(vars(narrow).values()), list(vars(wide).values()), rtol=1e-4)


def test_a_constant_feature_is_left_out_of_medians(X):
    constant = np.column_stack([X, np.full(len(X), 3.0)])
    assert isotropy_report(constant)["raw"].median_abs_skewness == pytest.approx(
        isotropy_report(X)["raw"].median_abs_skewness
    )


def test_vectors_of_zeros_are_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning):
        row = isotropy_report(np.zeros((4, 3)))["raw"]
    assert np.isnan(row.top_singular_share)
    assert np.isnan(row.median_ks_shape)


def test_errors(X):
    with pytest.raises(TypeError, match="must be a mapping"):
        isotropy_report(X, [NATSVCalibrator()])
    with pytest.raises(ValueError, match="named 'raw'"):
        isotropy_report(X, {"raw": NATSVCalibrator()})
    with pytest.raises(ValueError, match="NaN"):
        isotropy_report([[np.nan, 1], [1, 1]])


def test_table(X):
    report = isotropy_report(X, {"SN": StandardNormalizationCalibrator()})
    assert "average cosine" in repr(report)
    assert len(repr(report).splitlines()) == 4
    pytest.importorskip("pandas")
    assert report.to_frame().loc["SN", "effective rank"] == report["SN"].effective_rank


@pytest.mark.parametrize("scale", [1e-29, 1e28])
def test_any_scale(rng, scale):
    X = rng.standard_normal((60, 4)) + 1
    expected, found = isotropy_report(X)["raw"], isotropy_report(scale * X)["raw"]
    for name in (
        "average_cosine",
        "top_singular_share",
        "effective_rank",
        "median_ks_shape",
        "median_abs_skewness",
    ):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    # Z(c) becomes n for vectors without length, and the largest exponent alone counts for very long ones.
    assert found.partition_isotropy == pytest.approx(1 if scale < 1 else 0)


@pytest.mark.parametrize("function", [isotropy_report, normality])
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_magnitudes_out_of_range(function, rng, scale):
    with pytest.raises(ValueError, match=r"largest magnitude in X is .*00, .*rescale"):
        function(scale * rng.standard_normal((60, 4)))


@pytest.mark.parametrize("function", [isotropy_report, normality])
def test_bfloat16_tensors(function, rng):
    torch = pytest.importorskip("torch")
    X = torch.from_numpy(rng.standard_normal((60, 4))).bfloat16().requires_grad_()
    found, expected = function(X), function(X.detach().float().numpy())
    if function is isotropy_report:
        found, expected = found["raw"], expected["raw"]
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(getattr(found, name), value)
