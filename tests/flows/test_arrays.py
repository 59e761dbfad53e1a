import numpy as np
import torch

from skflow.flows._arrays import latents, log_prob, to_torch, vectors
from skflow.flows._glow import Glow

X = np.random.default_rng(0).normal(size=(8, 6))


def test_rows_come_back_and_are_as_likely_as_torch_says():
    flow = Glow(6).double()
    flow(torch.as_tensor(X))
    Z = latents(flow, X)
    np.testing.assert_allclose(vectors(flow, Z), X, rtol=1e-10, atol=1e-10)
    with torch.no_grad():
        expected = flow.log_prob(torch.as_tensor(X)).numpy()
    np.testing.assert_array_equal(log_prob(flow, X), expected)


def test_read_only_rows_are_copied():
    rows = X.astype(np.float32)
    rows.flags.writeable = False
    tensor = to_torch(rows, torch.zeros(1))
    tensor += 1
    np.testing.assert_array_equal(rows, X.astype(np.float32))
    assert to_torch(rows, torch.zeros(1, dtype=torch.float64)).dtype == torch.float64
