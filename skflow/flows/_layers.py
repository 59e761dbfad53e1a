"""The invertible layers of Glow on vectors, and the dense layer inside its couplings.

Every layer maps a batch of shape (n, d) to a batch of the same shape and returns the logarithm of the
absolute determinant of its Jacobian beside it: a scalar where that is the same for every row, else one value
per row.
"""

import math

import torch
from torch import nn
from torch.nn import functional

from .._device import has_float64

# Scales are stored as logarithms divided by 3, as BERT-flow's code does: it speeds up their learning.
LOG_SCALE_FACTOR = 3.0
# Below this standard deviation a unit counts as constant in the first batch and keeps the scale 1: dividing
# by it would blow up rounding noise, and whatever the unit does in later batches, by a factor of up to a
# million.
CONSTANT_STD = 1e-4
# The variances of fewer rows than these are anything between zero and several times the true one.
FEW_ROWS = 8
WEIGHT_STD = 0.05
# Half the range of the log scale of an affine coupling.
AFFINE_BOUND = 2.0


def _standardize(bias, log_scale, x):
    """Set the parameters so that exp(3 log_scale) * (x + bias) has mean 0 and variance 1 over the rows."""
    if has_float64(x.device):
        x = x.double()
    mean, variance = x.mean(dim=0), x.var(dim=0, correction=0)
    std = variance.sqrt()
    varies = std > CONSTANT_STD
    if len(x) < FEW_ROWS and varies.any():
        # As if the rows that are missing had the variance of an average feature.
        std = torch.lerp(variance[varies].mean(), variance, len(x) / FEW_ROWS).sqrt()
    bias.copy_(-mean)
    log_scale.copy_(torch.where(varies, -torch.log(std + 1e-6) / LOG_SCALE_FACTOR, 0.0))


class ActNorm(nn.Module):
    """Per-feature affine map y = exp(3 s) * (x + b), initialized from data (Kingma & Dhariwal 2018)."""

    def __init__(self, n_features):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(n_features))
        self.log_scale = nn.Parameter(torch.zeros(n_features))

    @torch.no_grad()
    def initialize(self, x):
        _standardize(self.bias, self.log_scale, x)
        return self(x)[0]

    def forward(self, x):
        scale = torch.exp(LOG_SCALE_FACTOR * self.log_scale)
        return torch.addcmul(scale * self.bias, x, scale), LOG_SCALE_FACTOR * self.log_scale.sum()

    def inverse(self, y):
        return y * torch.exp(-LOG_SCALE_FACTOR * self.log_scale) - self.bias


class ScaledLinear(nn.Module):
    """Dense layer with a learned output scale, y = exp(3 s) * (W x + b).

    In a coupling network the hidden layers are of this form (a linear map without bias, then ActNorm), and so
    is the output layer.
    """

    def __init__(self, n_inputs, n_outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_outputs, n_inputs))
        self.bias = nn.Parameter(torch.zeros(n_outputs))
        self.log_scale = nn.Parameter(torch.zeros(n_outputs))

    @torch.no_grad()
    def initialize(self, x):
        _standardize(self.bias, self.log_scale, x @ self.weight.T)
        return self(x)

    def forward(self, x):
        scale = torch.exp(LOG_SCALE_FACTOR * self.log_scale)
        return torch.addcmul(scale * self.bias, functional.linear(x, self.weight), scale)


class Coupling(nn.Module):
    """Changes one half of the features by a function of the other half.

    ``kind="additive"`` is y2 = x2 + t(x1) (Dinh et al. 2015, arXiv:1410.8516), whose Jacobian has determinant
    1. ``kind="affine"`` is y2 = exp(c(x1)) * (x2 + t(x1)) (Dinh et al. 2017, arXiv:1605.08803) with c = 2
    tanh(r / 2), so that no step can scale by more than exp(2), in either direction. Both are the identity
    before training.

    Parameters
    ----------
    n_features : int
        At least 2. x1 has floor(n_features / 2) of them.
    conditions_on_last : bool
        Whether x1 is the end of the vector instead of its beginning.
    """

    def __init__(self, n_features, hidden_width, *, kind, conditions_on_last):
        super().__init__()
        self.n_conditioning = n_features // 2
        self.kind = kind
        self.conditions_on_last = conditions_on_last
        n_changed = n_features - self.n_conditioning
        self.hidden = nn.ModuleList(
            [ScaledLinear(self.n_conditioning, hidden_width), ScaledLinear(hidden_width, hidden_width)]
        )
        self.output = ScaledLinear(hidden_width, n_changed if kind == "additive" else 2 * n_changed)

    @torch.no_grad()
    def reset_weights(self, generator):
        for layer in self.hidden:
            layer.weight.copy_(
                torch.randn(layer.weight.shape, generator=generator, dtype=torch.float64) * WEIGHT_STD
            )

    @torch.no_grad()
    def initialize(self, x):
        h = self._split(x)[0]
        for layer in self.hidden:
            h = torch.relu(layer.initialize(h))
        return self(x)[0]

    def _split(self, x):
        if self.conditions_on_last:
            changed, conditioning = x.split([x.shape[1] - self.n_conditioning, self.n_conditioning], dim=1)
            return conditioning, changed
        return x.split([self.n_conditioning, x.shape[1] - self.n_conditioning], dim=1)

    def _join(self, conditioning, changed):
        parts = (changed, conditioning) if self.conditions_on_last else (conditioning, changed)
        return torch.cat(parts, dim=1)

    def _shift_and_log_scale(self, conditioning):
        h = conditioning
        for layer in self.hidden:
            h = torch.relu(layer(h))
        out = self.output(h)
        if self.kind == "additive":
            return out, None
        shift, raw = out.chunk(2, dim=1)
        return shift, AFFINE_BOUND * torch.tanh(raw / AFFINE_BOUND)

    def forward(self, x):
        x1, x2 = self._split(x)
        shift, log_scale = self._shift_and_log_scale(x1)
        if log_scale is None:
            return self._join(x1, x2 + shift), x.new_zeros(())
        return self._join(x1, torch.exp(log_scale) * (x2 + shift)), log_scale.sum(dim=1)

    def inverse(self, y):
        y1, y2 = self._split(y)
        shift, log_scale = self._shift_and_log_scale(y1)
        if log_scale is not None:
            y2 = y2 * torch.exp(-log_scale)
        return self._join(y1, y2 - shift)


class Permutation(nn.Module):
    """A fixed random order of the features."""

    def __init__(self, n_features):
        super().__init__()
        self.register_buffer("order", torch.arange(n_features))

    @torch.no_grad()
    def reset_weights(self, generator):
        self.order.copy_(torch.randperm(len(self.order), generator=generator))

    def forward(self, x):
        return x[:, self.order], x.new_zeros(())

    def inverse(self, y):
        return y[:, torch.argsort(self.order)]


class LULinear(nn.Module):
    """Learned mixing y = P L (U + diag(sign exp(log_diagonal))) x (Kingma & Dhariwal 2018, section 3.2).

    P is a fixed permutation, L unit lower and U strictly upper triangular. The log-determinant is the sum of
    `log_diagonal`. It starts as a random rotation.

    `lower` and `upper` are stored times the square root of the number of features. Adam moves every number by
    about the learning rate at each update, all of a row at once: without the factor, the change of an output
    grows with the number of inputs, and a few hundred are enough to diverge at BERT-flow's rate.
    """

    def __init__(self, n_features):
        super().__init__()
        self.lower = nn.Parameter(torch.zeros(n_features, n_features))
        self.upper = nn.Parameter(torch.zeros(n_features, n_features))
        self.log_diagonal = nn.Parameter(torch.zeros(n_features))
        self.register_buffer("sign", torch.ones(n_features))
        self.register_buffer("order", torch.arange(n_features))

    @torch.no_grad()
    def reset_weights(self, generator):
        n = len(self.order)
        rotation = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64)).Q
        permutation, lower, upper = torch.linalg.lu(rotation)
        diagonal = upper.diagonal()
        self.order.copy_(permutation.argmax(dim=1))
        self.lower.copy_(lower.tril(-1) * math.sqrt(n))
        self.upper.copy_(upper.triu(1) * math.sqrt(n))
        self.sign.copy_(diagonal.sign())
        self.log_diagonal.copy_(diagonal.abs().log())

    def factors(self):
        """Return L, and U with its diagonal."""
        # The factors of a rotation are far from orthogonal: between the two products digits cancel. In use
        # that shows; in training speed counts.
        exact = not torch.is_grad_enabled() and has_float64(self.lower.device)
        dtype = torch.float64 if exact else self.lower.dtype
        n = len(self.order)
        lower = self.lower.to(dtype).tril(-1) / math.sqrt(n)
        lower = lower + torch.eye(n, dtype=dtype, device=lower.device)
        upper = self.upper.to(dtype).triu(1) / math.sqrt(n)
        upper = upper + torch.diag(self.sign * torch.exp(self.log_diagonal.to(dtype)))
        return lower, upper

    def forward(self, x):
        lower, upper = self.factors()
        y = x.to(lower.dtype) @ upper.T @ lower.T
        return y[:, self.order].to(x.dtype), self.log_diagonal.sum()

    def inverse(self, y):
        lower, upper = self.factors()
        x = y[:, torch.argsort(self.order)].T.to(lower.dtype)
        x = torch.linalg.solve_triangular(lower, x, upper=False, unitriangular=True)
        return torch.linalg.solve_triangular(upper, x, upper=True).T.to(y.dtype)
