"""BERT-flow: a normalizing flow, fitted by maximum likelihood, from sentence vectors to a Gaussian latent."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._typing import fit_context
from ._affine import Affine
from ._base import BaseCalibrator, working_dtype
from ._density import DensityMixin
from ._input_scaling import input_scaling, typical_rows
from ._moments import row_chunks
from ._whitened import check_linear_parameters, fit_whitening, latent_rotation, recoloring, whitening

if TYPE_CHECKING:
    import torch


# The data-dependent initialization estimates means and variances: from two or four rows it is useless.
MIN_INIT_ROWS = 64
# Training rows, evenly spaced, whose likelihood is compared before and after where none are held out.
MAX_PROBE_ROWS = 512
ROWS_ELSEWHERE = 16_384  # at a time on a device, which wants much to do at once
# A loss of so many nats per dimension is more than the noise of training.
FAILURE = 0.2
# Beside `flow` itself, the fitted flow depends on these; zuko's flows only on the width.
GLOW_PARAMETERS = ("n_levels", "n_steps", "hidden_width", "coupling", "permutation")


class NormalizingFlowCalibrator(DensityMixin, BaseCalibrator):
    r"""Map vectors to a standard Gaussian latent by a normalizing flow (BERT-flow).

    The flow :math:`z = f(x)` is an invertible network, fitted without labels by maximum likelihood,

    .. math:: \max_f \; \sum_i \log N(f(x_i); 0, I) + \log |\det \partial f / \partial x_i|,

    so that the vectors' anisotropic cloud becomes an isotropic one, in which cosine similarity follows human
    judgment better. The defaults are those of the released code of Li et al. (2020) for fitting on the
    target text: a Glow of 3 levels of 3 steps, one epoch at rate 1e-3; their setting for NLI text is
    ``max_epochs=0.15, learning_rate=2e-5``.

    Parameters
    ----------
    flow : {"glow", "nice", "realnvp", "maf", "nsf", "gf"} or callable, default="glow"
        "glow" is :class:`skflow.flows.Glow`. The other names are flows of the library zuko (extra ``zuko``),
        of its default depth ("nice" and "realnvp" are the same in zuko, with affine couplings), which invert
        less exactly than a Glow (see the user guide). A callable takes n_features and returns a
        :class:`torch.nn.Module` with the methods `forward` (latents and log-determinants), `inverse` and
        `log_prob` of Glow, and optionally `initialize`; it must be importable to be pickled, and is seeded
        through torch's global generator. All but Glow see features of median 0 and interquartile range 1.349.
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
        initialized from the data.
    batch_size : int, default=64
        Rows per update. An epoch is ceil(n_samples / batch_size) batches of nearly equal size.
    learning_rate : float, default=1e-3
        Constant rate of Adam.
    weight_decay : float, default=0.01
        Decoupled weight decay: every parameter is reduced by this times the rate at each update.
    max_grad_norm : float, default=1.0
        A gradient of larger norm is scaled down to it.
    early_stopping : bool, default=False
        Whether to hold out rows, compute their likelihood once an epoch, stop when it no longer grows, and
        restore the best parameters; see the notes.
    validation_fraction : float, default=0.1
        Share of the rows held out for early stopping.
    n_iter_no_change : int, default=5
        Epochs without an improvement of `tol` after which early stopping stops.
    tol : float, default=1e-4
        Smallest improvement that counts, in nats per row.
    strength : float or "auto", default=1.0
        How far to even the variances out, from 0 to 1. 1.0 is BERT-flow as published: the flow does all of
        it. Below, the whitening of :class:`WhiteningCalibrator` comes first, in closed form, the flow models
        what is left, and the deviations along the principal axes come back to the power ``1 - strength``;
        see the notes. "auto" takes the strength that WhiteningCalibrator would choose, by its formula.
    warm_start : bool, default=False
        Whether `fit` resumes from the parameters (and, where it was not unpickled, the optimizer's moments)
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
        Mean log-likelihood of the held-out rows after each epoch, in nats per row; with early stopping only.
    n_iter_ : int
        Updates done.
    parameters_ : dict of str to ndarray
        Everything that the flow has learned: the `state_dict` of `flow_`, as arrays.
    offset_, scale_ : ndarray of shape (n_features,)
        The flow sees ``(X - offset_) / scale_``. They are 0 and 1 for a feature whose spread is between 0.01
        and 100, as that of sentence vectors is; others are standardized first, since the recipe's steps do
        not suit them. A constant feature keeps the scale 1, and so does one whose spread is less than a
        millionth of the median of all: it is dead, and holds rounding errors. Where a whitening comes first,
        they are 0 and 1.
    strength_ : float
        `strength`, or what "auto" chose.
    linear_parameters_ : dict of str to ndarray, or None
        The whitening before the flow: "mean", "axes", "deviations", and the "rotation" from latents back to
        the axes. None with ``strength=1.0``.
    flow_ : torch.nn.Module
        The flow, rebuilt from `parameters_` at each access, on the cpu.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had names that are all strings.

    Warns
    -----
    ConvergenceWarning
        If updates were left out since loss or gradient was not finite, the mean likelihood of the training
        rows ends up lower than it began, or no epoch of early stopping was better than the start. The best
        parameters met are kept.

    See Also
    --------
    WhiteningCalibrator : The best Gaussian map among the linear ones, in closed form.

    Notes
    -----
    float64 input is computed in float64, everything else in float32 (on mps, always in float32). A training
    step is computed on one thread, so that the same seed gives the same result on the same machine, whatever
    else it runs. There is no `sample_weight`: minibatches cannot honor it.

    With a strength s below 1, and mean, axes and deviations of :class:`WhiteningCalibrator`, the latent is

    .. math:: z = \Lambda^{(1 - s) / 2} R^T f(\Lambda^{-1/2} U^T (x - \mu)),

    along the principal axes, where the rotation R brings the latents, whose features the flow has permuted,
    nearest to what it was given (orthogonal Procrustes). If f changed nothing, this would be whitening of
    strength s. `inverse_transform` undoes all of it, `score_samples` takes the whitening into account, and
    `sample` draws Gaussian f(x). Directions without signal, which a whitening drops, count with a deviation
    of 1e-5 of the largest, since a density needs all of them.

    A higher likelihood is no better similarity: more epochs raise the one and, so far, lower the other.
    Choose by `strength`, not by early stopping.

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
    >>> bool(np.allclose(calibrator.inverse_transform(calibrator.transform(X)), X))
    True
    >>> calibrator.score_samples(X).shape, calibrator.sample(2, random_state=0).shape
    ((500,), (2, 8))
    >>> before = calibrator.score(X)
    >>> calibrator.partial_fit(X).score(X) > before
    True
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
    _moments: Any = None  # of the optimizer

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

    @fit_context(prefer_skip_nested_validation=True)
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
            If a parameter or X is out of range, `device` is not there, or early stopping has one row only.
        """
        from ..flows._batches import ShuffledEpochs, hold_out
        from ..flows._fit import Patience

        with self._fitting():
            resume = self.warm_start and hasattr(self, "parameters_")
            X = self._validate_rows(X, reset=not resume)
            rng = check_random_state(self.random_state)
            rows, held_out = hold_out(len(X), self.validation_fraction if self.early_stopping else 0, rng)
            n_rows = len(X) if rows is None else len(rows)

            def first_rows(n):
                chosen = rng.permutation(n_rows)[:n]
                return X[chosen if rows is None else rows[chosen]]

            flow = self._resume() if resume else self._begin(X, first_rows, rng)
            epoch_length = math.ceil(n_rows / self.batch_size)
            n_updates = max(round(self.max_epochs * epoch_length), int(self.max_epochs > 0))
            batches = ShuffledEpochs(X, rows, self.batch_size, rng)
            judges = X[:: math.ceil(len(X) / MAX_PROBE_ROWS)] if held_out is None else X[held_out]
            patience = None if held_out is None else Patience(self.n_iter_no_change, self.tol)
            record = self._train(flow, batches, n_updates, epoch_length, judges, patience)
            scores = np.array([] if held_out is None else record.scores)
            self.validation_scores_ = scores + self._before.log_det
            self.loss_curve_ = self._losses(record)
            self.n_iter_ = len(self.loss_curve_)
        self._warn_of_one_row(len(X))
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Go on fitting the flow with one pass over X, in the order that it comes in.

        The first call initializes the flow from its first rows. `max_epochs`, `warm_start` and early stopping
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
            As in `fit`, or if X does not have the number of features seen before.
        """
        from ..flows._batches import batches_in_order

        with self._fitting():
            resume = hasattr(self, "parameters_")
            X = self._validate_rows(X, reset=not resume)
            rng = check_random_state(self.random_state)
            flow = self._resume() if resume else self._begin(X, lambda n: X[:n], rng)
            n_updates = math.ceil(len(X) / self.batch_size)
            batches = batches_in_order(X, self.batch_size)
            judges = X[:: math.ceil(len(X) / MAX_PROBE_ROWS)]
            record = self._train(flow, batches, n_updates, n_updates, judges)
            if not resume:
                self.loss_curve_ = self.validation_scores_ = np.empty(0)
            self.loss_curve_ = np.append(self.loss_curve_, self._losses(record))
            self.n_iter_ = len(self.loss_curve_)
        return self

    @contextlib.contextmanager
    def _fitting(self):
        """Compute on one thread, and leave the calibrator as it was where a fit fails."""
        import torch

        from ..flows._threads import one_thread

        with self._restored_on_failure(), one_thread, torch.inference_mode(False):
            yield

    def _settings(self):
        """Return the parameters that a flow is built from, as plain values."""
        kind = "callable" if callable(self.flow) else self.flow
        names = {"glow": GLOW_PARAMETERS, "callable": ()}.get(kind, ("hidden_width",))
        values = {name: getattr(self, name) for name in names}
        return {"flow": kind, **{n: v if isinstance(v, str) else int(v) for n, v in values.items()}}

    def _begin(self, X, first_rows, rng):
        """Learn the maps around the flow from X; return a flow initialized from `first_rows(n)`."""
        from .._device import resolve_device
        from ..flows._arrays import to_torch, torch_dtype
        from ..flows._build import build_flow, initialize

        device = resolve_device(self.device)
        self._dtype = working_dtype(X.dtype).name
        self._architecture = self._settings()
        self._moments = None
        self.offset_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        self.linear_parameters_, self._automatic_strength = None, 1.0
        if self.strength == 1:
            self.offset_, self.scale_ = input_scaling(X, standardize=self.flow != "glow")
        else:
            self.linear_parameters_, self._automatic_strength = fit_whitening(X)
        seed = rng.randint(np.iinfo(np.int32).max)
        flow = build_flow(self._architecture, X.shape[1], seed=seed, builder=self.flow)
        flow = flow.to(device=device, dtype=torch_dtype(device, self._dtype))
        if hasattr(flow, "initialize") or callable(self.flow):
            rows = self._before(first_rows(max(self.batch_size, MIN_INIT_ROWS)))
            initialize(flow, to_torch(typical_rows(rows), next(flow.parameters())))
        return flow

    def _resume(self):
        """Return the fitted flow; raise ValueError if a parameter that it cannot follow was changed."""
        from .._device import resolve_device
        from ..flows._arrays import torch_dtype
        from ..flows._build import check_settings

        device = resolve_device(self.device)
        check_settings(self._settings(), self._architecture)
        if self.linear_parameters_ is None and self.strength != 1:
            raise ValueError(
                f"strength={self.strength!r} cannot follow a fit with strength=1.0, which had no whitening "
                "first: fit a new calibrator, or set strength=1.0."
            )
        return self.flow_.to(device=device, dtype=torch_dtype(device, self._dtype))

    def _train(self, flow, batches, n_updates, epoch_length, judges, patience=None):
        """Train a flow on batches of rows, judged by other rows; store what it learned, return the record."""
        from ..flows._arrays import judge, latents
        from ..flows._fit import fit
        from ..flows._residence import batches_for
        from ..flows._training import Trainer

        before = self._before
        recipe = {name: getattr(self, name) for name in ("learning_rate", "weight_decay", "max_grad_norm")}
        trainer = Trainer(flow, **recipe, moments=self._moments)
        pieces = [judges[rows] for rows in row_chunks(judges)]
        record = fit(
            trainer,
            batches_for(flow, batches, before),
            n_updates=n_updates,
            epoch_length=epoch_length,
            likelihood=judge(flow, lambda: map(before, pieces), without_outliers=patience is None),
            tolerance=FAILURE * self.n_features_in_,
            patience=patience,
            verbose=self.verbose,
        )
        self._moments = trainer.moments
        self.strength_ = self._automatic_strength if self.strength == "auto" else float(self.strength)
        self.parameters_ = {name: array.cpu().numpy().copy() for name, array in flow.state_dict().items()}
        if self.linear_parameters_ is not None:
            rotation = latent_rotation(lambda rows: latents(flow, rows), self.n_features_in_)
            self.linear_parameters_ = {**self.linear_parameters_, "rotation": rotation}
        if record.warning:
            warnings.warn(
                f"The flow did not train well: {record.warning}. Try a learning_rate below "
                f"{self.learning_rate} or a larger batch_size.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return record

    def _losses(self, record):
        """Return the losses of a record in bits per dimension of the vectors, not of what the flow sees."""
        return np.array(record.losses) - self._before.log_det / (self.n_features_in_ * math.log(2))

    @property
    def _before(self):
        """The map from vectors to what the flow sees."""
        if (linear := self.linear_parameters_) is None:
            return Affine(self.offset_, self.scale_)
        return self._built.get(("whitening",), linear.values(), lambda: whitening(linear))

    @property
    def _after(self):
        """The map from latents of the flow to those that `transform` returns."""
        linear, s = self.linear_parameters_, self.strength_
        if linear is None:
            return Affine()
        return self._built.get(("recoloring", s), linear.values(), lambda: recoloring(linear, s))

    @property
    def flow_(self) -> torch.nn.Module:
        """The flow as a torch module, of ``(X - offset_) / scale_``, whitened if `strength` is below 1."""
        check_is_fitted(self, "parameters_")
        from ..flows._build import restore_flow

        return restore_flow(
            self._architecture, self.n_features_in_, self.parameters_, dtype=self._dtype, builder=self.flow
        )

    def __skflow_operations__(self):
        """Return the transform of float32 vectors as a dtype and a list of operations."""
        check_is_fitted(self, "parameters_")
        if callable(self.flow) or self._architecture["flow"] == "callable":
            raise ValueError(f"flow={self.flow!r} is code, which only a pickle can refer to.")
        operations = [*self._before.operations, ("flow", self.flow_), *self._after.operations]
        return np.dtype(np.float32 if len(operations) == 1 else np.float64), operations

    def _check_fitted_state(self):
        super()._check_fitted_state()
        if self._dtype not in ("float32", "float64"):
            raise ValueError(f"_dtype is {self._dtype!r}, expected 'float32' or 'float64'")
        if not np.all(self.scale_ > 0):
            raise ValueError("scale_ is not positive")
        if not all(np.isfinite(array).all() for array in self.parameters_.values()):
            raise ValueError("parameters_ are not finite")
        for name in ("loss_curve_", "validation_scores_"):
            curve = getattr(self, name, np.empty(0))
            if not isinstance(curve, np.ndarray) or curve.ndim != 1 or curve.dtype.kind != "f":
                raise ValueError(f"{name} is {curve!r}, expected a 1-D array of floats")
        for name in ("strength_", "_automatic_strength"):
            value = getattr(self, name, None)
            if not isinstance(value, float) or not 0 <= value <= 1:
                raise ValueError(f"{name} is {value!r}, expected a number from 0 to 1")
        check_linear_parameters(self.linear_parameters_, self.n_features_in_)
        self.flow_  # noqa: B018  # fails where the arrays do not fit together

    def _apply(self, X, outputs, function):
        """Fill `outputs` chunk by chunk with what `function(flow, rows)` returns for the rows of X."""
        from .._device import resolve_device
        from ..flows._arrays import torch_dtype
        from ..flows._threads import for_each

        device = resolve_device(self.device, missing="warn")
        dtype = torch_dtype(device, working_dtype(X.dtype))
        flow = self._built.get(
            ("flow", device, dtype, self._dtype, *self._architecture.items(), *self.parameters_),
            (self.flow, *self.parameters_.values()),
            lambda: self.flow_.to(device=device, dtype=dtype),
        )

        def compute(rows):
            outputs[rows] = function(flow, X[rows])

        chunks = row_chunks(X) if device.type == "cpu" else gen_batches(len(X), ROWS_ELSEWHERE)
        for_each(compute, list(chunks))
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
            If X is not finite or does not have the number of features seen in fit.
        """
        check_is_fitted(self, "parameters_")
        X = self._validate_rows(X, reset=False)
        from ..flows._arrays import latents

        before, after = self._before, self._after
        Z = np.empty(X.shape, dtype=working_dtype(X.dtype))
        return self._apply(X, Z, lambda flow, rows: after(latents(flow, before(rows))))

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
            If X is not finite or does not have the number of features seen in fit.
        """
        check_is_fitted(self, "parameters_")
        X = self._validate_calibrated(X, self.n_features_in_)
        from ..flows._arrays import vectors

        before, after = self._before, self._after
        X_original = np.empty(X.shape, dtype=working_dtype(X.dtype))
        return self._apply(
            X, X_original, lambda flow, rows: before.inverse(vectors(flow, after.inverse(rows)))
        )

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
            If X is not finite or does not have the number of features seen in fit.
        """
        check_is_fitted(self, "parameters_")
        X = self._validate_rows(X, reset=False)
        from ..flows._arrays import log_prob

        before = self._before
        scores = self._apply(X, np.empty(len(X)), lambda flow, rows: log_prob(flow, before(rows)))
        return scores + before.log_det
