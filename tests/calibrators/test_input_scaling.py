import numpy as np
import pytest

from skflow.calibrators._input_scaling import input_scaling, quartiles, typical_rows

X = np.random.default_rng(0).normal(size=(501, 3))


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_quartiles_are_those_of_numpy(n):
    np.testing.assert_allclose(
        np.stack(quartiles(X[:n])), np.percentile(X[:n], [25, 50, 75], axis=0), rtol=1e-12
    )


def test_features_of_ordinary_scale_stay():
    offset, scale = input_scaling(X, standardize=False)
    assert offset.tolist() == [0, 0, 0]
    assert scale.tolist() == [1, 1, 1]


def test_features_of_extraordinary_scale_get_median_and_spread():
    rows = X * [1, 1e-3, 1e5]
    offset, scale = input_scaling(rows, standardize=False)
    low, median, high = np.percentile(rows, [25, 50, 75], axis=0)
    np.testing.assert_allclose(offset, [0, *median[1:]], rtol=1e-12)
    np.testing.assert_allclose(scale, [1, *(high - low)[1:] / 1.349], rtol=1e-12)


def test_a_constant_feature_is_only_centered():
    rows = X.copy()
    rows[:, 1] = 7.0
    offset, scale = input_scaling(rows, standardize=True)
    assert (offset[1], scale[1]) == (7.0, 1.0)
    np.testing.assert_allclose(offset[[0, 2]], np.median(X, axis=0)[[0, 2]], rtol=1e-12)


def test_outliers_are_not_typical_unless_all_are():
    rows = X.copy()
    rows[3, 1] = 1e6
    np.testing.assert_array_equal(typical_rows(rows), np.delete(rows, 3, axis=0))
    one_each = np.array([[1e9, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(typical_rows(one_each), one_each)
