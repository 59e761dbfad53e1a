"""Flows of the library zuko under the interface of :class:`skflow.flows.Glow`."""

from torch import nn

from .._device import has_float64

# zuko inverts "gf" by bisection between these bounds; beyond, its densities underflow.
GF_BOUND = 10.0
ZUKO_FLOWS = {"nice": "NICE", "realnvp": "RealNVP", "maf": "MAF", "nsf": "NSF", "gf": "GF"}


class ZukoFlow(nn.Module):
    """Thin adapter around a flow of zuko (Rozet et al. 2022, doi:10.5281/zenodo.7625672), Gaussian base.

    Parameters
    ----------
    name : {"nice", "realnvp", "maf", "nsf", "gf"}
        Flow of :mod:`zuko.flows`, taken with its defaults but for the hidden widths.
    n_features : int
    hidden_width : int
        Width of the two hidden layers of each network.

    Raises
    ------
    ImportError
        If zuko is not installed.
    """

    def __init__(self, name, n_features, hidden_width):
        super().__init__()
        self.name = name
        try:
            import zuko
        except ImportError as error:
            raise ImportError(
                f"flow={name!r} is a flow of zuko, not installed: pip install 'scikit-bertflow[zuko]'"
            ) from error
        options = {"hidden_features": (hidden_width, hidden_width)}
        self._bound = GF_BOUND if name == "gf" else None
        self.flow = getattr(zuko.flows, ZUKO_FLOWS[name])(n_features, **options)

    def _bounded(self, x):
        """Return x, of "gf" within the bounds."""
        return x if self._bound is None else x.clamp(-self._bound, self._bound)

    def forward(self, x):
        """Map vectors (n, d) to latents (n, d) and the log-determinants (n,)."""
        return self.flow().transform.call_and_ladj(self._bounded(x))

    def inverse(self, z):
        """Map latents (n, d) back to vectors."""
        return self.flow().transform.inv(z)

    def log_prob(self, x):
        """Log-likelihood of vectors (n, d) in nats; beyond its bounds "gf" falls off like a Gaussian."""
        bounded = self._bounded(x)
        log_prob = self.flow().log_prob(bounded)
        if self._bound is None:
            return log_prob
        x, bounded = (values.double() if has_float64(x.device) else values for values in (x, bounded))
        return log_prob - 0.5 * (x.square() - bounded.square()).sum(dim=1)
