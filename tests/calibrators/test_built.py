"""What transforms keep between calls."""

import concurrent.futures
import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skflow import (
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from skflow.calibrators._built import MAX_ENTRIES, Built

ESTIMATORS = [
    NormalizingFlowCalibrator(random_state=0),
    NormalizingFlowCalibrator(strength=0.5, random_state=0),
    WhiteningCalibrator(),
    WhiteningCalibrator(method="zca"),
    NATSVCalibrator(),
    StandardNormalizationCalibrator(),
]


@pytest.fixture(name="X")
def _vectors():
    rows = np.random.RandomState(0).standard_normal((200, 6)) * np.arange(1, 7) + 1
    return rows.astype(np.float32)


def test_built_once_for_the_same_arrays():
    built, a, b = Built(), np.ones(2), np.ones(2)
    first = built.get(("x",), [a], object)
    assert built.get(("x",), [a], object) is first
    assert built.get(("y",), [a], object) is not first
    assert built.get(("x",), [b], object) is not first  # equal, but another array
    assert built.get(("x",), [b, a], object) is not built.get(("x",), [b], object)
    for i in range(3 * MAX_ENTRIES):
        built.get((i,), [a], object)
    assert len(built._entries) == MAX_ENTRIES


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_second_transform_is_the_first(estimator, X):
    estimator = copy.deepcopy(estimator).fit(X)
    before, Z = dict(vars(estimator)), estimator.transform(X)
    state = estimator.__getstate__()
    assert vars(estimator) == before
    assert "_built" not in state
    for _ in range(2):
        assert_array_equal(estimator.transform(X), Z)
    copies = pickle.loads(pickle.dumps(estimator)), copy.deepcopy(estimator)
    for other in copies:
        assert other._built is not estimator._built
        assert_array_equal(other.transform(X), Z)
    # Another dtype in between does not convert what is kept.
    assert_allclose(estimator.transform(X.astype(np.float64)), Z, rtol=1e-3, atol=1e-4)
    assert_array_equal(estimator.transform(X), Z)


@pytest.mark.parametrize("strength", [1.0, 0.5])
def test_new_arrays_and_parameters_are_noticed(strength, X):
    flow = NormalizingFlowCalibrator(strength=strength, random_state=0).fit(X)
    Z = flow.transform(X)
    trained = copy.deepcopy(flow)
    trained.transform(X)
    assert not np.array_equal(trained.partial_fit(X).transform(X), Z)
    assert_array_equal(trained.transform(X), pickle.loads(pickle.dumps(trained)).transform(X))
    name = "levels.0.0.actnorm.bias"
    flow.parameters_[name] = flow.parameters_[name] + 1
    assert not np.allclose(flow.transform(X), Z, atol=0.1)

    whitening = WhiteningCalibrator(strength=strength).fit(X)
    whitening.transform(X)
    whitening.set_params(strength=0.25, method="zca")
    expected = WhiteningCalibrator(strength=0.25, method="zca").fit(X).transform(X)
    assert_array_equal(whitening.transform(X), expected)
    whitening.set_params(strength=1.0, method="pca").fit(3 * X)
    assert_allclose(np.cov(whitening.transform(3 * X).T, ddof=0), np.eye(6), atol=1e-5)


def test_flow_is_nobody_elses(X):
    calibrator = NormalizingFlowCalibrator(random_state=0).fit(X)
    Z = calibrator.transform(X)
    flow = calibrator.flow_
    assert flow is not calibrator.flow_
    for parameter in flow.parameters():
        parameter.data.zero_()
    assert_array_equal(calibrator.transform(X), Z)


def test_threads_share_what_is_built(X):
    calibrator = pickle.loads(pickle.dumps(NormalizingFlowCalibrator(strength=0.5, random_state=0).fit(X)))
    expected = calibrator.transform(X)
    calibrator = pickle.loads(pickle.dumps(calibrator))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for Z in pool.map(lambda _: calibrator.transform(X), range(32)):
            assert_array_equal(Z, expected)
