"""The loop of a fit, by a trainer whose likelihoods are known."""

import itertools
import math

import pytest
import torch

from skflow.flows._fit import Patience, fit


class Script:
    """A trainer whose parameter is the number of steps done; its likelihood is read from a list."""

    def __init__(self, likelihoods, skipped=()):
        self.likelihoods = likelihoods
        self.skipped = skipped
        self.n_steps = 0

    def step(self, batch):
        self.n_steps += 1
        return torch.tensor([batch, math.nan if self.n_steps in self.skipped else 1.0])

    def snapshot(self):
        return self.n_steps

    def restore(self, snapshot):
        self.n_steps = snapshot

    def likelihood(self):
        return self.likelihoods[self.n_steps]


def run(likelihoods, n_updates, epoch_length=1, **options):
    trainer = Script(likelihoods, options.pop("skipped", ()))
    options = {"tolerance": 0.5, **options}
    record = fit(
        trainer,
        itertools.count(),
        n_updates=n_updates,
        epoch_length=epoch_length,
        likelihood=trainer.likelihood,
        **options,
    )
    return trainer, record


def test_record_of_a_fit_that_goes_well():
    trainer, record = run([0, 1, 2, 3, 4, 5], 5, epoch_length=2)
    assert record.losses == [0, 1, 2, 3, 4]
    assert record.scores == [2, 4, 5]  # once an epoch and at the end
    assert (record.before, record.after, record.best) == (0, 5, 5)
    assert not record.has_failed
    assert not record.is_restored
    assert record.warning == ""
    assert trainer.n_steps == 5


def test_no_batch_is_taken_that_is_not_trained_on():
    batches = itertools.count()
    trainer = Script([0, 1, 2])
    fit(trainer, batches, n_updates=2, epoch_length=2, likelihood=trainer.likelihood, tolerance=1)
    assert next(batches) == 2


def test_no_update():
    _, record = run([7], 0)
    assert (record.before, record.after, record.best) == (7, 7, 7)
    assert record.losses == record.scores == []
    assert not record.has_failed


def test_a_loss_within_the_tolerance_is_no_failure():
    trainer, record = run([1, 0.6], 1)
    assert not record.has_failed
    assert trainer.n_steps == 1


@pytest.mark.parametrize("after", [0.4, math.nan, -math.inf])
def test_a_failure_is_restored(after):
    trainer, record = run([1, 2, after], 2)
    assert record.has_failed
    assert record.is_restored
    assert trainer.n_steps == 1
    assert "went from 1 to" in record.warning
    assert "reached 2 are kept" in record.warning


def test_updates_left_out_are_counted():
    _, record = run([0, 1, 2, 3], 3, skipped=(2,))
    assert record.n_skipped == 1
    assert record.warning.startswith("1 of 3 updates had no finite loss")


def test_patience_stops_and_restores_the_best():
    likelihoods = [0, 1, 3, 2, 2.5, 2.9, 9]
    trainer, record = run(likelihoods, 6, patience=Patience(3, 1e-4))
    assert record.scores == [1, 3, 2, 2.5, 2.9]
    assert trainer.n_steps == 2
    assert not record.has_failed


def test_improvements_within_tol_do_not_count_but_the_best_is_kept():
    trainer, record = run([0, 1, 1.05, 1.08, 1.2], 4, patience=Patience(2, 0.1))
    assert record.scores == [1, 1.05, 1.08]
    assert trainer.n_steps == 3


def test_no_epoch_better_than_the_start():
    trainer, record = run([5, 4, 3], 2, patience=Patience(9, 0))
    assert record.has_failed
    assert trainer.n_steps == 0
    assert "went from 5 to 3" in record.warning


def test_progress_seldom_looks_at_the_loss(capsys):
    # A look waits for the device.
    looks = []

    def read(results):
        looks.append(results.ndim)
        return results.tolist()

    _, record = run(list(range(301)), 300, epoch_length=100, verbose=1, read=read)
    assert looks.count(2) == 3  # epochs
    assert looks.count(1) <= 5
    assert len(record.losses) == 300
    assert "299.0000 bits/dim" in capsys.readouterr().err
