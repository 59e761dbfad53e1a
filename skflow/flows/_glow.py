"""Glow on vectors: the density model of BERT-flow."""

import math
from typing import Literal

import torch
from torch import nn

from .._device import has_float64
from ._layers import ActNorm, Coupling, LULinear, Permutation

COUPLINGS = ("additive", "affine")
PERMUTATIONS = ("reverse", "random", "lu")


class _Step(nn.Module):
    """One step of flow: ActNorm, a mixing of the features, a coupling.

    A vector of one feature has nothing to mix or couple: its step is ActNorm alone.
    """

    def __init__(self, n_features, hidden_width, *, coupling, permutation, conditions_on_last):
        super().__init__()
        self.actnorm = ActNorm(n_features)
        self.mixing = self.coupling = None
        if n_features > 1:
            if permutation != "reverse":
                self.mixing = Permutation(n_features) if permutation == "random" else LULinear(n_features)
            self.coupling = Coupling(
                n_features, hidden_width, kind=coupling, conditions_on_last=conditions_on_last
            )

    def layers(self):
        return [layer for layer in (self.actnorm, self.mixing, self.coupling) if layer is not None]


class Glow(nn.Module):
    r"""Normalizing flow of affine and coupling layers in a multi-scale architecture.

    The flow is a stack of levels of steps. A step normalizes each feature (ActNorm), mixes the features, and
    changes one half of them by a function of the other half (coupling). After each level but the last the
    vector is split: the first half goes on, the second half is final, so that the latent is z = [half of
    level 0, half of level 1, ..., rest]. The likelihood is that of a standard Gaussian latent,

    .. math:: \log p(x) = \log N(z; 0, I) + \log |\det \partial z / \partial x|.

    Reversing the order of the features at every step and conditioning on the first half is the same as
    leaving them where they are and conditioning on either end in turn, so with ``permutation="reverse"``
    nothing is moved.

    Parameters
    ----------
    n_features : int
        Width d of the vectors. Half of d is floor(d / 2). The levels end early where one feature is left.
    n_levels, n_steps : int, default=3
        Number of levels, and of steps in each.
    hidden_width : int, default=32
        Width of the two hidden layers of each coupling network.
    coupling : {"additive", "affine"}, default="additive"
        Whether the coupling network shifts the other half, or shifts and scales it.
    permutation : {"reverse", "random", "lu"}, default="reverse"
        How the features are mixed: reversed, in a fixed random order, or by a learned matrix in LU form.
    generator : torch.Generator, default=None
        Source of the random weights (a CPU generator); None for torch's own.

    References
    ----------
    Bohan Li et al. (2020), On the Sentence Embeddings from Pre-trained Language Models, arXiv:2011.05864.
    Diederik P. Kingma and Prafulla Dhariwal (2018), Glow: Generative Flow with Invertible 1x1 Convolutions,
    arXiv:1807.03039.

    Examples
    --------
    >>> import torch
    >>> from skflow.flows import Glow
    >>> flow = Glow(6, generator=torch.Generator().manual_seed(0))
    >>> x = torch.randn(32, 6, generator=torch.Generator().manual_seed(1))
    >>> flow.initialize(x)
    >>> z, log_det = flow.forward(x)
    >>> bool(torch.allclose(flow.inverse(z), x, atol=1e-5))
    True
    >>> flow.log_prob(x).shape
    torch.Size([32])
    """

    def __init__(
        self,
        n_features: int,
        *,
        n_levels: int = 3,
        n_steps: int = 3,
        hidden_width: int = 32,
        coupling: Literal["additive", "affine"] = "additive",
        permutation: Literal["reverse", "random", "lu"] = "reverse",
        generator: torch.Generator | None = None,
    ) -> None:
        self._lay_out(n_features, n_levels, n_steps, hidden_width, coupling, permutation)
        for module in self.modules():
            reset_weights = getattr(module, "reset_weights", None)
            if reset_weights is not None:
                reset_weights(generator)

    @classmethod
    def _without_weights(cls, *args, **options):
        """Build a flow whose state is yet to be loaded: all parameters are zero, and nothing is drawn."""
        flow = cls.__new__(cls)
        flow._lay_out(*args, **options)
        return flow

    def _lay_out(self, n_features, n_levels, n_steps, hidden_width, coupling, permutation):
        """Lay out the architecture with all parameters zero."""
        super().__init__()
        if coupling not in COUPLINGS:
            raise ValueError(f"coupling must be one of {COUPLINGS}, got {coupling!r}")
        if permutation not in PERMUTATIONS:
            raise ValueError(f"permutation must be one of {PERMUTATIONS}, got {permutation!r}")
        for name, value in (
            ("n_features", n_features),
            ("n_levels", n_levels),
            ("n_steps", n_steps),
            ("hidden_width", hidden_width),
        ):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value!r}")
        self.n_features = n_features
        self.permutation = permutation
        self.levels = nn.ModuleList()
        # Whether the features stand in the reverse of the order that the definition gives them.
        self.reversed_at_end = []
        is_reversed = False
        width = n_features
        for _ in range(n_levels):
            steps = nn.ModuleList()
            for _ in range(n_steps):
                if permutation == "reverse" and width > 1:
                    is_reversed = not is_reversed
                steps.append(
                    _Step(
                        width,
                        hidden_width,
                        coupling=coupling,
                        permutation=permutation,
                        conditions_on_last=is_reversed,
                    )
                )
            self.levels.append(steps)
            self.reversed_at_end.append(is_reversed)
            if width == 1:
                break
            width //= 2

    @torch.no_grad()
    def initialize(self, x: torch.Tensor) -> None:
        """Set every ActNorm, hidden ones included, so that its output on `x` has mean 0 and variance 1.

        Parameters
        ----------
        x : Tensor of shape (n, n_features)
            The first batch. A unit that is constant in it (standard deviation at most 1e-4) keeps the scale
            1.

        Raises
        ------
        RuntimeError
            From torch, if `x` has another number of features, dtype or device than the flow.
        """
        for level, steps in enumerate(self.levels):
            for step in steps:
                for layer in step.layers():
                    x = layer.initialize(x) if hasattr(layer, "initialize") else layer(x)[0]
            if level < len(self.levels) - 1:
                x = self._split(x, level)[0]

    def _halves(self, level):
        """Return the slices of the features that go on after a level and of those that are final."""
        width = len(self.levels[level][0].actnorm.bias)
        n_kept = width // 2 if level < len(self.levels) - 1 else 0
        if self.reversed_at_end[level]:
            return slice(width - n_kept, None), slice(width - n_kept)
        return slice(n_kept), slice(n_kept, None)

    def _split(self, x, level):
        """Split into the half that goes on and the half that is final."""
        kept, final = self._halves(level)
        return x[:, kept], x[:, final]

    def _in_defined_order(self, part, level):
        return part.flip(1) if self.reversed_at_end[level] else part

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Map vectors to latents.

        Parameters
        ----------
        x : Tensor of shape (n, n_features)
            Vectors, of the dtype and on the device of the flow.

        Returns
        -------
        z : Tensor of shape (n, n_features)
            Latents.
        log_det : Tensor of shape (n,)
            Logarithm of the absolute Jacobian determinant of x -> z, in nats.

        Raises
        ------
        RuntimeError
            From torch, if `x` has another number of features, dtype or device than the flow.
        """
        log_det = x.new_zeros(len(x))
        parts = []
        for level, steps in enumerate(self.levels):
            for step in steps:
                for layer in step.layers():
                    x, layer_log_det = layer(x)
                    log_det = log_det + layer_log_det
            if level < len(self.levels) - 1:
                x, final = self._split(x, level)
                parts.append(self._in_defined_order(final, level))
        parts.append(self._in_defined_order(x, len(self.levels) - 1))
        return torch.cat(parts, dim=1), log_det

    def inverse(self, z: torch.Tensor) -> torch.Tensor:
        """Map latents back to vectors.

        Parameters
        ----------
        z : Tensor of shape (n, n_features)
            Latents.

        Returns
        -------
        x : Tensor of shape (n, n_features)
            The vectors, up to rounding.

        Raises
        ------
        RuntimeError
            From torch, if `z` has another number of features, dtype or device than the flow.
        """
        sizes = []
        width = self.n_features
        for _ in self.levels[1:]:
            sizes.append(width - width // 2)
            width //= 2
        parts = list(z.split([*sizes, width], dim=1))
        x = self._in_defined_order(parts.pop(), len(self.levels) - 1)
        for level in reversed(range(len(self.levels))):
            if level < len(self.levels) - 1:
                final = self._in_defined_order(parts[level], level)
                x = torch.cat([final, x] if self.reversed_at_end[level] else [x, final], dim=1)
            for step in reversed(self.levels[level]):
                for layer in reversed(step.layers()):
                    x = layer.inverse(x)
        return x

    def log_prob(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the log-likelihood of vectors.

        Parameters
        ----------
        x : Tensor of shape (n, n_features)
            Vectors.

        Returns
        -------
        log_prob : Tensor of shape (n,)
            In nats, float64 (float32 on mps): the squares of vectors far out would overflow float32.

        Raises
        ------
        RuntimeError
            From torch, if `x` has another number of features, dtype or device than the flow.
        """
        z, log_det = self(x)
        if has_float64(x.device):
            z, log_det = z.double(), log_det.double()
        return log_det - 0.5 * (z.square().sum(dim=1) + self.n_features * math.log(2 * math.pi))

    @property
    def coupling(self) -> str:
        """Kind of the couplings, "additive" or "affine"."""
        return next((m.kind for m in self.modules() if isinstance(m, Coupling)), "additive")
