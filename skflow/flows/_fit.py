"""The loop of a fit: updates, the likelihood once an epoch, the best parameters, a record of it all."""

import dataclasses
import itertools
import math
import time

from tqdm.auto import tqdm

# Between two looks at the loss for the progress bar, since a look waits for the device.
SECONDS_BETWEEN_LOOKS = 0.5


@dataclasses.dataclass(frozen=True)
class Patience:
    """When to stop early.

    Parameters
    ----------
    n_epochs : int
        So many epochs in a row without an improvement.
    tol : float
        Smallest improvement of the likelihood that counts, in nats.
    """

    n_epochs: int
    tol: float


@dataclasses.dataclass
class Record:
    """What happened in a fit.

    Parameters
    ----------
    losses : list of float
        Of each batch before its update, in bits per dimension.
    scores : list of float
        Likelihood after each epoch, in nats.
    n_skipped : int
        Updates left out because loss or gradient were not finite.
    before, after, best : float
        Likelihood before the first update, after the last one, and the highest met.
    has_failed : bool
        Whether the flow got worse (with patience: whether no epoch was better than the start).
    is_restored : bool
        Whether the flow has the best parameters, and not the last ones.
    """

    losses: list[float]
    scores: list[float]
    n_skipped: int
    before: float
    after: float
    best: float
    has_failed: bool
    is_restored: bool

    @property
    def warning(self):
        """What went wrong, in words; "" if nothing did."""
        happened = []
        if self.n_skipped:
            happened.append(
                f"{self.n_skipped} of {len(self.losses)} updates had no finite loss and gradient, and were "
                "left out"
            )
        if self.has_failed:
            happened.append(
                f"the log-likelihood of the rows that judge it went from {self.before:.6g} to "
                f"{self.after:.6g} nats, and the parameters that reached {self.best:.6g} are kept"
            )
        return "; ".join(happened)


def read(results):
    """Return a tensor as lists of floats, waiting for its device."""
    return results.tolist()


def fit(
    trainer, batches, *, n_updates, epoch_length, likelihood, tolerance, patience=None, verbose=0, read=read
):
    """Train a flow on batches, asking the device for numbers only after each epoch.

    Parameters
    ----------
    trainer : Trainer
    batches : iterator of Tensor
        At least `n_updates` of them; no more are taken.
    n_updates : int
    epoch_length : int
        Updates after which the likelihood is looked at.
    likelihood : callable
        Without arguments; the mean log-likelihood under the flow as it is, in nats, of rows that judge it.
    tolerance : float
        So many nats may be lost without patience: the noise of training.
    patience : Patience or None
        Whether to stop early, and keep the best parameters.
    verbose : int, default=0
        Above 0, a progress bar with the loss.
    read : callable
        Returns the rows of a tensor as floats.

    Returns
    -------
    record : Record
    """
    losses, scores = [], []
    before = after = best = to_beat = likelihood()
    best_parameters, n_waited = trainer.snapshot(), 0
    results, n_results, n_skipped = None, 0, 0
    batches = itertools.islice(batches, n_updates)
    bar = tqdm(batches, total=n_updates, desc="Fitting flow", unit="update", disable=not verbose)
    last_look = time.monotonic()
    for update, batch in enumerate(bar, 1):
        result = trainer.step(batch)
        if results is None:
            results = result.new_empty(min(epoch_length, n_updates), 2)
        results[n_results] = result
        n_results += 1
        if verbose and time.monotonic() - last_look > SECONDS_BETWEEN_LOOKS:
            bar.set_postfix_str(f"{read(result)[0]:.4f} bits/dim", refresh=False)
            last_look = time.monotonic()
        if update % epoch_length and update < n_updates:
            continue
        for loss, grad_norm in read(results[:n_results]):
            losses.append(loss)
            n_skipped += not (math.isfinite(loss) and math.isfinite(grad_norm))
        n_results = 0
        bar.set_postfix_str(f"{losses[-1]:.4f} bits/dim")
        after = likelihood()
        scores.append(after)
        if after > best or not math.isfinite(best):
            best, best_parameters = after, trainer.snapshot()
        if patience is not None:
            n_waited += 1
            if after > to_beat + patience.tol:
                to_beat, n_waited = after, 0
            if n_waited >= patience.n_epochs:
                break
    bar.close()
    if patience is None:
        has_failed = not (math.isfinite(after) and after >= before - tolerance)
    else:
        has_failed = bool(scores) and not (math.isfinite(best) and best > before)
    is_restored = has_failed or patience is not None
    if is_restored:
        trainer.restore(best_parameters)
    return Record(losses, scores, n_skipped, before, after, best, has_failed, is_restored)
