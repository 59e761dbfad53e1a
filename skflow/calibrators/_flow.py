"""BERT-flow: a normalizing flow, fitted by maximum likelihood, from sentence vectors to a Gaussian latent."""

from __future__ import annotations

import itertools
import math
import threading
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ._base import BaseCalibrator, working_dtype
from ._input_scaling import common_scale, input_scaling, typical_rows
from ._linear_stage import Frame, fit_linear_stage, input_deviations, latent_rotation

if TYPE_CHECKING:
    import torch


# The data-dependent initialisation estimates means and variances: from two or four rows it is useless.
MIN_INIT_ROWS = 64
# Rows whose likelihood is compared before and after training where no validation rows are held out.
MAX_PROBE_ROWS = 1024
# A loss of so many nats per dimension is more than the noise of training.
FAILURE = 0.2
# Next to the largest float64.
LARGEST = 1e308
# A row so many nats per dimension less likely than most from the beginning is an outlier: it would outweigh
# all others in a mean.
OUTLYING = 100.0
# Parameters that the fitted flow depends on, beside `flow` itself; zuko's flows only on the width.
GLOW_PARAMETERS = ("n_levels", "n_steps", "hidden_width", "coupling", "permutation")
# Modules of others draw their weights from torch's global generator, which all threads share.
GLOBAL_GENERATOR = threading.Lock()
# Rows are transformed in chunks of about so many numbers, which stay in the processor's cache.
CHUNK_SIZE = 2**19
# Learned by training, of use only for more of it: stays out of pickles.
TRAINING_STATE = "_moments"


class NormalizingFlowCalibrator(BaseCalibrator):
    r"""Map vectors to a standard Gaussian latent by a normalizing flow (BERT-flow).

    The flow :math:`z = f(x)` is an invertible network, fitted without labels by maximum likelihood,

    .. math:: \max_f \; \sum_i \log N(f(x_i); 0, I) + \log |\det \partial f / \partial x_i|,

    so that the vectors' anisotropic cloud becomes an isotropic one, in which cosine similarity follows human
    judgement better. The defaults are those of the released code of Li et al. (2020) for fitting on the
    target text: a Glow of 3 levels of 3 steps, one epoch at rate 1e-3; their setting for NLI text is
    ``max_epochs=0.15, learning_rate=2e-5``.

    Parameters
    ----------
    flow : {"glow", "nice", "realnvp", "maf", "nsf", "gf"} or callable, default="glow"
        "glow" is :class:`skflow.flows.Glow`. The other names are flows of the library zuko (extra ``zuko``),
        of its default depth ("nice" and "realnvp" are the same in zuko, with affine couplings). A callable
        takes n_features and returns a :class:`torch.nn.Module` with the methods `forward` (which returns
        latents and log-determinants), `inverse` and `log_prob` of Glow, and optionally `initialize`; it must
        be importable to be pickled, and is seeded through torch's global generator, which is put back
        afterwards. All but Glow see features standardised to median 0 and interquartile range 1.349.
    n_levels, n_steps : int, default=3
        Levels of the Glow, and steps in each.
    hidden_width : int, default=32
        Width of the two hidden layers of each coupling network (of zuko's networks, too).
    coupling : {"additive", "affine"}, default="additive"
        Whether a coupling of the Glow shifts, or shifts and scales.
    permutation : {"reverse", "random", "lu"}, default="reverse"
        How each step of the Glow mixes the features: in reverse order, in a fixed random order, or by a
        learned matrix.
    max_epochs : float, default=1.0
        Passes over the data; may be a fraction. Above 0 at least one update is made; 0 leaves the flow as
        initialised from the data.
    batch_size : int, default=64
        Rows an update. An epoch is ceil(n_samples / batch_size) batches of nearly equal size.
    learning_rate : float, default=1e-3
        Constant rate of Adam.
    weight_decay : float, default=0.01
        Decoupled weight decay: every parameter is reduced by this times the rate at each update.
    max_grad_norm : float, default=1.0
        A gradient of larger norm is scaled down to it.
    early_stopping : bool, default=False
        Whether to hold out rows, compute their likelihood once an epoch, stop when it no longer grows, and
        restore the best parameters. A higher likelihood does not mean a better similarity.
    validation_fraction : float, default=0.1
        Share of the rows held out for early stopping.
    n_iter_no_change : int, default=5
        Epochs without an improvement of `tol` after which early stopping stops.
    tol : float, default=1e-4
        Smallest improvement that counts, in nats a row.
    strength : float or "auto", default=1.0
        How far to even the variances out, from 0 to 1. 1.0 is BERT-flow as published: the flow does all of
        it. Below, the whitening of :class:`WhiteningCalibrator` comes first, in closed form, the flow models
        what is left, and the deviations along the principal axes are restored to the power ``1 - strength``;
        see the notes. "auto" takes the strength that WhiteningCalibrator would choose, by its formula.
    warm_start : bool, default=False
        Whether `fit` goes on from the parameters (and, where it was not unpickled, the optimizer's moments)
        of the last fit, instead of starting anew.
    device : str, default="auto"
        Where to compute: "auto" takes cuda, then mps, then cpu. What was fitted on a device that is not there
        when it transforms runs on the cpu, with a warning.
    random_state : int, RandomState instance or None, default=None
        Draws the weights, the order of the rows and the held-out rows.
    verbose : int, default=0
        Above 0, a progress bar with the loss.

    Attributes
    ----------
    loss_curve_ : ndarray of shape (n_iter_,)
        Minus mean log-likelihood of each batch before its update, in bits per dimension. Not finite where
        the update was left out.
    validation_scores_ : ndarray of shape (n_epochs,)
        Mean log-likelihood of the held-out rows after each epoch, in nats a row; with early stopping only.
    n_iter_ : int
        Updates done.
    parameters_ : dict of str to ndarray
        Everything that the flow has learned; of a Glow in the names of :meth:`skflow.flows.Glow.to_arrays`.
    offset_, scale_ : ndarray of shape (n_features,)
        The flow sees ``(X - offset_) / scale_``. They are 0 and 1 for a feature whose spread is between 0.01
        and 100, as that of sentence vectors is; others are standardised first, since the recipe's steps do
        not suit them. A constant feature keeps the scale 1, and so does one whose spread is less than a
        millionth of the median of all: it is dead, and holds rounding errors. Where a whitening comes first,
        they are 0 and 1 but for vectors of extreme size.
    strength_ : float
        `strength`, or what "auto" chose.
    linear_parameters_ : dict of str to ndarray, or None
        The whitening before the flow: "mean", "axes", "deviations", and "turn", the rotation that takes
        latents back to the axes. None where there is none, with ``strength=1.0``.
    flow_ : torch.nn.Module
        The flow, rebuilt from `parameters_` at each access, on the cpu.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had names that are all strings.

    Raises
    ------
    ValueError
        If X holds NaN or infinities, is empty or sparse; if `device` is not there to fit on; if early
        stopping has not at least two rows.

    Warns
    -----
    ConvergenceWarning
        If updates were left out because the loss or its gradient was not finite, or the mean likelihood of
        the training rows, apart from outliers, ends up lower than it began; the best parameters met are kept.

    See Also
    --------
    WhiteningCalibrator : The best Gaussian map among the linear ones, in closed form.

    Notes
    -----
    float64 input is computed in float64, everything else in float32 (on mps, always in float32). A training
    step is computed on one thread, so that the same seed gives the same result on the same machine, whatever
    else it runs. There is no `sample_weight`: minibatches cannot honour it.

    With a strength s below 1, and the mean, axes and deviations of
    :class:`WhiteningCalibrator`, the latent is

    .. math:: z = \Lambda^{(1 - s) / 2} R^T f(\Lambda^{-1/2} U^T (x - \mu)),

    along the principal axes, where the rotation R brings the latents, whose features the flow has permuted,
    nearest to what it was given (orthogonal Procrustes). If f changed nothing, this would be whitening of
    strength s. `inverse_transform` undoes all of it, `score_samples` takes the whitening into account, and
    `sample` draws Gaussian f(x). Directions without signal, which a whitening drops, count with a deviation
    of 1e-5 of the largest, since a density needs all of them.

    A higher likelihood is no better similarity: more epochs raise the one and, on every layer measured so
    far, lower the other. Choose by `strength`, not by early stopping.

    A Glow inverts exactly, up to rounding. zuko's "nice", "realnvp" and "maf" do too ("maf" in `n_features`
    passes). "nsf" is a spline within [-5, 5] and the identity outside, inexact next to these bounds. "gf" has
    no closed inverse: zuko bisects to 1e-6 within [-10, 10], so that `inverse_transform` and `sample` cannot
    leave that range of standardised features, and values beyond it count as 10. Where its tails are flat
    the inverse runs into these bounds: use another flow to draw samples.

    References
    ----------
    Bohan Li, Hao Zhou, Junxian He, Mingxuan Wang, Yiming Yang, Lei Li (2020), On the Sentence Embeddings from
    Pre-trained Language Models, EMNLP, arXiv:2011.05864.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.calibrators import NormalizingFlowCalibrator
    >>> X = np.random.RandomState(0).standard_normal((500, 8)) @ np.diag(np.arange(1.0, 9)) + 3
    >>> calibrator = NormalizingFlowCalibrator(max_epochs=3, random_state=0).fit(X)
    >>> Z = calibrator.transform(X)
    >>> Z.shape
    (500, 8)
    >>> bool(np.allclose(calibrator.inverse_transform(Z), X))
    True

    It is a density as well, which learns further from more rows:

    >>> calibrator.score_samples(X).shape
    (500,)
    >>> before = calibrator.score(X)
    >>> calibrator.partial_fit(X).score(X) > before
    True
    >>> calibrator.sample(2, random_state=0).shape
    (2, 8)
    """

    _fitted_shapes: ClassVar[dict] = {"offset_": ("n_features_in_",), "scale_": ("n_features_in_",)}
    _parameter_constraints: ClassVar[dict] = {
        "flow": [StrOptions({"glow", "nice", "realnvp", "maf", "nsf", "gf"}), callable],
        "n_levels": [Interval(Integral, 1, None, closed="left")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "hidden_width": [Interval(Integral, 1, None, closed="left")],
        "coupling": [StrOptions({"additive", "affine"})],
        "permutation": [StrOptions({"reverse", "random", "lu"})],
        "max_epochs": [Interval(Real, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "strength": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "warm_start": ["boolean"],
        "device": [str],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        flow: str | Callable[..., Any] = "glow",
        *,
        n_levels: int = 3,
        n_steps: int = 3,
        hidden_width: int = 32,
        coupling: Literal["additive", "affine"] = "additive",
        permutation: Literal["reverse", "random", "lu"] = "reverse",
        max_epochs: float = 1.0,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.01,
        max_grad_norm: float = 1.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        tol: float = 1e-4,
        strength: float | Literal["auto"] = 1.0,
        warm_start: bool = False,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.flow = flow
        self.n_levels = n_levels
        self.n_steps = n_steps
        self.hidden_width = hidden_width
        self.coupling = coupling
        self.permutation = permutation
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_grad_norm = max_grad_norm
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.strength = strength
        self.warm_start = warm_start
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Fit the flow to X by maximum likelihood.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors. A memory map is read in chunks and never copied whole.
        y : None
            Ignored.

        Returns
        -------
        self : NormalizingFlowCalibrator
            The fitted calibrator.

        Raises
        ------
        ValueError
            If a parameter is out of its range, or X is not a finite, dense array of numbers, or `device` is
            not there, or early stopping has not at least two rows.
        """
        goes_on = self.warm_start and hasattr(self, "parameters_")
        X = self._validate_rows(X, reset=not goes_on)
        if goes_on:
            self._check_can_go_on()
        rng = check_random_state(self.random_state)
        rows, held_out = self._hold_out(len(X), rng)
        if not goes_on:
            self._begin(X)
        self.validation_scores_ = np.empty(0)
        self.loss_curve_ = self._train(X, rows, held_out, rng, goes_on)
        self.n_iter_ = len(self.loss_curve_)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Go on fitting the flow with one pass over X, in the order that it comes in.

        The first call initialises the flow from its first rows. `max_epochs`, `warm_start` and early stopping
        play no part; shuffle the rows if their order means something.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors, any number of them: they are used in batches of at most `batch_size`.
        y : None
            Ignored.

        Returns
        -------
        self : NormalizingFlowCalibrator
            The fitted calibrator.

        Raises
        ------
        ValueError
            If a parameter is out of its range, or X is not a finite, dense array of numbers, or has not the
            number of features seen before.
        """
        goes_on = hasattr(self, "parameters_")
        X = self._validate_rows(X, reset=not goes_on)
        if goes_on:
            self._check_can_go_on()
        else:
            self._begin(X)
            self.validation_scores_ = np.empty(0)
            self.loss_curve_ = np.empty(0)
        loss_curve = self._train(X, None, None, check_random_state(self.random_state), goes_on, in_order=True)
        self.loss_curve_ = np.append(self.loss_curve_, loss_curve)
        self.n_iter_ = len(self.loss_curve_)
        return self

    def _hold_out(self, n_rows, rng):
        """Return the indices of the rows to train on (None for all) and of those held out."""
        if not self.early_stopping:
            return None, None
        if n_rows < 2:
            raise ValueError(
                f"early_stopping=True needs at least 2 samples to hold one out, got n_samples={n_rows}"
            )
        n_held_out = min(max(1, round(self.validation_fraction * n_rows)), n_rows - 1)
        order = rng.permutation(n_rows)
        return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])

    def _architecture_wanted(self):
        kind = "callable" if callable(self.flow) else self.flow
        names = {"glow": GLOW_PARAMETERS, "callable": ()}.get(kind, ("hidden_width",))
        values = {name: getattr(self, name) for name in names}
        return {"flow": kind, **{n: v if isinstance(v, str) else int(v) for n, v in values.items()}}

    def _check_can_go_on(self):
        """Raise ValueError if a parameter that a fitted flow cannot follow was changed."""
        wanted = self._architecture_wanted()
        for name, value in self._architecture.items():
            if wanted.get(name) != value:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} cannot go on from a fit with {name}={value!r}: fit a "
                    f"new calibrator, or set {name} back."
                )
        if self.linear_parameters_ is None and self.strength != 1:
            raise ValueError(
                f"strength={self.strength!r} cannot follow a fit with strength=1.0, which had no whitening "
                "first: fit a new calibrator, or set strength=1.0."
            )

    def _begin(self, X):
        self._dtype = working_dtype(X.dtype).name
        self._moments = None
        self._architecture = self._architecture_wanted()
        self._automatic_strength = 1.0
        scale = common_scale(X)
        if self.strength == 1:
            offset, spread = input_scaling(X if scale == 1 else X / scale, standardize=self.flow != "glow")
            self.offset_, self.scale_ = offset * scale, np.minimum(spread, LARGEST / scale) * scale
            self.linear_parameters_ = None
            return
        self.offset_, self.scale_ = np.zeros(X.shape[1]), np.full(X.shape[1], scale)
        stage, self._automatic_strength = fit_linear_stage(X if scale == 1 else X / scale)
        self.linear_parameters_ = {**stage, "turn": np.eye(X.shape[1])}

    def _train(self, X, rows, held_out, rng, goes_on, *, in_order=False):
        """Train on the given rows of X, store what was learned, and return the loss of every update."""
        import torch

        from ..flows._batches import shuffled_batches, split_evenly
        from ..flows._device import resolve_device
        from ..flows._threads import one_thread
        from ..flows._training import Trainer

        device = resolve_device(self.device)
        n_rows = len(X) if rows is None else len(rows)
        n_batches = -(-n_rows // self.batch_size)
        n_updates = n_batches if in_order else round(self.max_epochs * n_batches)
        if not in_order and self.max_epochs > 0:
            n_updates = max(1, n_updates)
        with one_thread, torch.inference_mode(False):
            flow = self._rebuilt() if goes_on else self._new_flow(rng)
            flow = flow.to(device=device, dtype=self._torch_dtype(device))

            def batches():
                if in_order:
                    bounds = split_evenly(n_rows, self.batch_size)
                    for start, stop in itertools.pairwise(bounds):
                        yield X[start:stop]
                while not in_order:
                    yield from shuffled_batches(X, rows, self.batch_size, rng)

            n_init = max(self.batch_size, MIN_INIT_ROWS)
            stream = batches()
            self.strength_ = self._automatic_strength if self.strength == "auto" else float(self.strength)
            frame = self._frame
            can_initialize = hasattr(flow, "initialize")
            is_callable = self._architecture["flow"] == "callable"
            if not goes_on and (can_initialize or is_callable):
                if in_order:
                    first = X[:n_init]
                else:
                    chosen = rng.permutation(n_rows)[:n_init]
                    first = X[chosen if rows is None else rows[chosen]]
                first = _to_torch(typical_rows(frame.enter(first)), flow)
                if can_initialize:
                    flow.initialize(first)
                if is_callable:
                    _check_forward(flow, first)
            trainer = Trainer(
                flow,
                learning_rate=self.learning_rate,
                weight_decay=self.weight_decay,
                max_grad_norm=self.max_grad_norm,
                moments=self._moments if goes_on else None,
            )
            if held_out is not None:
                probe = X[held_out]
            else:
                probe = X[:: -(-len(X) // MAX_PROBE_ROWS)]
            loss_curve = self._updates(
                trainer, frame, stream, n_updates, n_batches, probe, held_out is not None
            )
            self._moments = trainer.moments
            self._store(flow)
            if self.linear_parameters_ is not None:
                self._align(flow)
        return loss_curve

    def _updates(self, trainer, frame, stream, n_updates, n_batches, probe, is_validation):
        """Do the updates; to stop early, or where the last parameters are no good, go back to the best."""
        likelihoods = self._log_likelihoods(trainer.flow, frame, probe)
        is_judged = np.ones(len(probe), dtype=bool)
        if not is_validation:
            is_judged = likelihoods >= np.median(likelihoods) - OUTLYING * self.n_features_in_

        def judge():
            return self._log_likelihoods(trainer.flow, frame, probe)[is_judged].mean()

        loss_curve, validation_scores = [], []
        begin = best = to_beat = likelihoods[is_judged].mean() if is_judged.any() else math.nan
        score, n_no_change = begin, 0
        best_parameters = trainer.snapshot()
        with self._progress(n_updates) as progress:
            for update in range(1, n_updates + 1):
                loss_curve.append(trainer.step(_to_torch(frame.enter(next(stream)), trainer.flow)))
                progress.update()
                progress.set_postfix_str(f"{loss_curve[-1]:.4f} bits/dim", refresh=False)
                if update % n_batches and update < n_updates:
                    continue
                score = judge()
                validation_scores.append(score)
                if score > best or not math.isfinite(best):
                    best, best_parameters = score, trainer.snapshot()
                to_beat, n_no_change = (
                    (score, 0) if score > to_beat + self.tol else (to_beat, n_no_change + 1)
                )
                if is_validation and n_no_change >= self.n_iter_no_change:
                    break
        if is_validation:
            self.validation_scores_ = np.asarray(validation_scores) - self._log_scaling()
        # Held-out rows may well get less likely: that is what stopping early is for.
        worst = -math.inf if is_validation else begin - FAILURE * self.n_features_in_
        has_failed = not (math.isfinite(score) and score >= worst)
        if has_failed or is_validation:
            trainer.restore(best_parameters)
        if has_failed or trainer.n_skipped:
            skipped = (
                f"{trainer.n_skipped} of {len(loss_curve)} updates had no finite loss and gradient, and were "
                "left out"
            )
            fell = (
                f"the log-likelihood of the training rows went from {begin:.6g} to {score:.6g} nats, and the "
                f"parameters that reached {best:.6g} are kept"
            )
            happened = ([skipped] if trainer.n_skipped else []) + ([fell] if has_failed else [])
            warnings.warn(
                f"The flow did not train well: {'; '.join(happened)}. Try a learning_rate below "
                f"{self.learning_rate} or a larger batch_size.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return np.asarray(loss_curve) + self._log_scaling() / (self.n_features_in_ * math.log(2))

    def _log_scaling(self):
        """Return by how many nats scaling and whitening raise the likelihood of a row."""
        log_scaling = np.log(self.scale_).sum()
        if self.linear_parameters_ is not None:
            log_scaling += np.log(input_deviations(self.linear_parameters_)).sum()
        return log_scaling

    def _progress(self, n_updates):
        from tqdm.auto import tqdm

        return tqdm(total=n_updates, desc="Fitting flow", unit="update", disable=not self.verbose)

    def _new_flow(self, rng):
        import torch

        seed = rng.randint(np.iinfo(np.int32).max)
        architecture = self._architecture
        if architecture["flow"] == "glow":
            from ..flows import Glow

            options = {name: architecture[name] for name in GLOW_PARAMETERS}
            return Glow(self.n_features_in_, generator=torch.Generator().manual_seed(seed), **options)
        with GLOBAL_GENERATOR, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if architecture["flow"] == "callable":
                if not callable(self.flow):
                    raise ValueError(f"flow={self.flow!r}, but it was a callable when fitted: set it back.")
                flow = self.flow(self.n_features_in_)
                _check_module(flow)
                return flow
            from ..flows._zuko import ZukoFlow

            return ZukoFlow(architecture["flow"], self.n_features_in_, architecture["hidden_width"])

    def _store(self, flow):
        if self._architecture["flow"] == "glow":
            self.parameters_ = flow.to_arrays()
        else:
            self.parameters_ = {
                name: tensor.cpu().numpy().copy() for name, tensor in flow.state_dict().items()
            }

    def _align(self, flow):
        """Learn which rotation takes the latents back to the principal axes."""
        import torch

        @torch.no_grad()
        def latents(rows):
            return flow(_to_torch(rows, flow))[0].cpu().numpy().astype(np.float64)

        self.linear_parameters_["turn"] = latent_rotation(latents, self.n_features_in_)

    def _rebuilt(self):
        import torch

        if self._architecture["flow"] == "glow":
            from ..flows import Glow

            # levels.{l}.steps.{s}.actnorm.bias and so on
            _, levels, _, steps = zip(*(name.split(".")[:4] for name in self.parameters_), strict=True)
            return Glow.from_arrays(self.parameters_, n_levels=len(set(levels)), n_steps=len(set(steps)))
        flow = self._new_flow(np.random.RandomState(0))
        flow.load_state_dict({name: torch.tensor(array) for name, array in self.parameters_.items()})
        return flow.to(getattr(torch, self._dtype))

    @property
    def flow_(self) -> torch.nn.Module:
        """The flow as a torch module, of ``(X - offset_) / scale_``, whitened if `strength` is below 1."""
        check_is_fitted(self, "parameters_")
        return self._rebuilt()

    def _check_fitted_state(self):
        super()._check_fitted_state()
        if self._dtype not in ("float32", "float64"):
            raise ValueError(f"_dtype is {self._dtype!r}, expected 'float32' or 'float64'")
        if not np.all(self.scale_ > 0):
            raise ValueError("scale_ is not positive")
        if not all(np.isfinite(array).all() for array in self.parameters_.values()):
            raise ValueError("parameters_ are not finite")
        for name in ("strength_", "_automatic_strength"):
            value = getattr(self, name, None)
            if not isinstance(value, float) or not 0 <= value <= 1:
                raise ValueError(f"{name} is {value!r}, expected a number from 0 to 1")
        if self.linear_parameters_ is not None:
            self._check_linear_parameters()
        flow = self._rebuilt()
        if self._architecture["flow"] == "glow" and flow.n_features != self.n_features_in_:
            raise ValueError(f"the flow is one of {flow.n_features} features, expected {self.n_features_in_}")

    def _check_linear_parameters(self):
        d = self.n_features_in_
        shapes = {"mean": (d,), "axes": (d, d), "deviations": (d,), "turn": (d, d)}
        for name, shape in shapes.items():
            array = self.linear_parameters_[name]
            if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"linear_parameters_[{name!r}] is no finite float64 array of shape {shape}")
        if not np.all(self.linear_parameters_["deviations"] > 0):
            raise ValueError("linear_parameters_['deviations'] is not positive")

    def _torch_dtype(self, device, dtype=None):
        import torch

        return getattr(torch, "float32" if device.type == "mps" else dtype or self._dtype)

    @property
    def _frame(self):
        return Frame(self.offset_, self.scale_, self.linear_parameters_, self.strength_)

    def _chunks(self, X):
        n = max(1, CHUNK_SIZE // X.shape[1])
        return [slice(start, min(start + n, len(X))) for start in range(0, len(X), n)]

    def _log_likelihoods(self, flow, frame, X):
        """Return the log-likelihood of each row of X, in nats, as the flow sees it."""
        import torch

        with torch.no_grad():
            chunks = [_log_prob(flow, _to_torch(frame.enter(X[rows]), flow)) for rows in self._chunks(X)]
        return np.concatenate(chunks).astype(np.float64)

    def _apply(self, X, outputs, function):
        """Fill `outputs` chunk by chunk with what `function(flow, rows)` returns for the rows of X."""
        import torch

        from ..flows._device import resolve_device
        from ..flows._threads import for_each

        device = resolve_device(self.device, fall_back=True)
        flow = self._rebuilt()
        flow = flow.to(device=device, dtype=self._torch_dtype(device, working_dtype(X.dtype).name))

        @torch.no_grad()
        def compute(rows):
            outputs[rows] = function(flow, X[rows])

        for_each(compute, self._chunks(X))
        return outputs

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Map X to the latent.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_features)
            Latents, float64 for float64 input, else float32.

        Raises
        ------
        NotFittedError
            If the calibrator is not fitted.
        ValueError
            If X is not finite or has not the number of features seen in fit.
        """
        check_is_fitted(self, "parameters_")
        X = self._validate_rows(X, reset=False)
        frame = self._frame

        def latents(flow, x):
            return frame.restore(flow(_to_torch(frame.enter(x), flow))[0].cpu().numpy())

        return self._apply(X, np.empty(X.shape, dtype=working_dtype(X.dtype)), latents)

    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Map latents back to vectors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Latents, as `transform` returns them.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            Vectors, float64 for float64 input, else float32.

        Raises
        ------
        NotFittedError
            If the calibrator is not fitted.
        ValueError
            If X is not finite or has not the number of features seen in fit.
        """
        check_is_fitted(self, "parameters_")
        X = self._validate_calibrated(X, self.n_features_in_)
        frame = self._frame

        def invert(flow, z):
            return frame.leave(flow.inverse(_to_torch(frame.unrestore(z), flow)).cpu().numpy())

        return self._apply(X, np.empty(X.shape, dtype=working_dtype(X.dtype)), invert)

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Compute the log-likelihood of each row of X under the flow.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            In nats, float64.

        Raises
        ------
        NotFittedError
            If the calibrator is not fitted.
        ValueError
            If X is not finite or has not the number of features seen in fit.
        """
        check_is_fitted(self, "parameters_")
        X = self._validate_rows(X, reset=False)
        frame = self._frame

        def log_likelihoods(flow, x):
            return _log_prob(flow, _to_torch(frame.enter(x), flow))

        log_prob = self._apply(X, np.empty(len(X)), log_likelihoods)
        return log_prob - self._log_scaling()

    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """Compute the mean log-likelihood of X, in nats a row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.
        y : None
            Ignored.

        Returns
        -------
        log_likelihood : float
            The mean.

        Raises
        ------
        NotFittedError
            If the calibrator is not fitted.
        ValueError
            If X is not finite or has not the number of features seen in fit.
        """
        return float(self.score_samples(X).mean())

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> np.ndarray:
        """Draw vectors from the fitted density.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance or None, default=None
            Draws the Gaussian latents that are mapped back.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            In the dtype that the flow was fitted in.

        Raises
        ------
        ValueError
            If `n_samples` is not a positive integer.
        """
        check_is_fitted(self, "parameters_")
        if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 1:
            raise ValueError(f"n_samples must be an integer of at least 1, got {n_samples!r}")
        latents = check_random_state(random_state).standard_normal((n_samples, self.n_features_in_))
        return self.inverse_transform(self._frame.restore(latents).astype(self._dtype))

    def __getstate__(self):
        state = super().__getstate__()
        if TRAINING_STATE in state:
            state[TRAINING_STATE] = None
        return state


def _check_module(flow):
    """Raise TypeError unless what a callable `flow` returned has the methods asked of it."""
    import torch

    missing = [name for name in ("inverse", "log_prob") if not callable(getattr(flow, name, None))]
    if not isinstance(flow, torch.nn.Module) or missing or not list(flow.parameters()):
        lacks = f" without {' and '.join(missing)}" if missing else ""
        raise TypeError(
            "flow must be a callable that returns a torch.nn.Module with parameters and the methods forward, "
            f"inverse and log_prob, got one that returns a {type(flow).__name__}{lacks}"
        )


def _check_forward(flow, x):
    """Raise TypeError unless a module maps rows to latents and log-determinants."""
    import torch

    with torch.no_grad():
        result = flow(x)
    is_pair = isinstance(result, tuple) and len(result) == 2
    if not is_pair or [part.shape for part in result] != [x.shape, x.shape[:1]]:
        got = [tuple(part.shape) for part in result] if is_pair else f"a {type(result).__name__}"
        raise TypeError(
            f"forward of the {type(flow).__name__} that flow returns must map {tuple(x.shape)} to a tuple of "
            f"latents of that shape and log-determinants of shape ({len(x)},), got {got}"
        )


def _to_torch(X, flow):
    """Put rows where the flow is."""
    import torch

    like = next(flow.parameters())
    # torch wants to be able to write to what it is given: rows of a read-only file are copied.
    X = np.require(X, dtype=working_dtype(X.dtype), requirements=["C", "W"])
    return torch.as_tensor(X, dtype=like.dtype, device=like.device)


def _log_prob(flow, x):
    """Return the log-likelihood of each row as a flow sees it, in nats; in float64 for rows far out."""
    from ..flows import Glow

    if not isinstance(flow, Glow):
        return flow.log_prob(x).cpu().numpy()
    z, log_det = (part.cpu().numpy().astype(np.float64) for part in flow(x))
    return log_det - 0.5 * ((z * z).sum(axis=1) + z.shape[1] * math.log(2 * math.pi))
