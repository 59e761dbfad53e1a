import numpy as np
import pytest

from skflow.calibrators._strength import automatic_strength


def test_the_formula_in_a_basis_of_its_own():
    rng = np.random.default_rng(0)
    mean, root = rng.normal(size=5), rng.normal(size=(5, 5))
    covariance = root @ root.T
    values, axes = np.linalg.eigh(covariance)
    along = (values * (axes.T @ mean) ** 2).sum()
    share = values.sum() / (mean @ mean + values.sum()) * (values**2).sum() / (along + (values**2).sum())
    expected = (np.abs(mean).max() / np.sqrt((mean**2).sum())) ** (1 / 3) * (1 - share)
    assert automatic_strength(mean, covariance) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("factor", [1e-20, 0.5, 1e20])
def test_a_common_factor_does_not_matter(factor):
    mean, covariance = np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    scaled = automatic_strength(factor * mean, factor**2 * covariance)
    assert scaled == pytest.approx(automatic_strength(mean, covariance), rel=1e-12)


def test_no_variation_and_no_mean():
    assert automatic_strength(np.ones(3), np.zeros((3, 3))) == 0
    assert automatic_strength(np.zeros(3), np.eye(3)) == 0
