"""The affine maps around a flow, against matrices written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skflow.calibrators._affine import Affine

RNG = np.random.RandomState(0)
SHIFT, SCALE = RNG.standard_normal(5), RNG.uniform(0.1, 3, size=5)
MATRIX = np.linalg.qr(RNG.standard_normal((5, 5)))[0]
X = RNG.standard_normal((7, 5))


@pytest.mark.parametrize("matrix", [None, MATRIX])
@pytest.mark.parametrize("scale", [None, SCALE])
@pytest.mark.parametrize("shift", [None, SHIFT])
def test_map_inverse_and_determinant(shift, scale, matrix):
    affine = Affine(shift, scale, matrix)
    jacobian = (np.eye(5) if matrix is None else matrix) / (1 if scale is None else scale)
    expected = (X - (0 if shift is None else shift)) @ jacobian
    assert_allclose(affine(X), expected, rtol=1e-13, atol=1e-14)
    assert_allclose(affine.inverse(expected), X, rtol=1e-12, atol=1e-13)
    assert_allclose(affine.log_det, np.linalg.slogdet(jacobian)[1], atol=1e-13)
    result = X
    for kind, operand in affine.operations:
        result = {"subtract": np.subtract, "divide": np.divide, "multiply": np.matmul}[kind](result, operand)
    assert_allclose(result, expected, rtol=1e-13, atol=1e-14)


def test_what_does_nothing_costs_nothing():
    identity = Affine(np.zeros(5), np.ones(5))
    assert identity(X) is X
    assert identity.inverse(X) is X
    assert identity.operations == []
    assert identity.log_det == 0
