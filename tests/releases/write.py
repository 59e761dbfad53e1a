"""Write the small files of a release that later ones must be able to load.

To be run once for each release, and the directory that it makes to be committed:
``python tests/releases/write.py``. Run it with the oldest numpy that the release supports, since newer ones
read its pickles, not the other way round.
"""

import pickle
import shutil
from pathlib import Path

import numpy as np

import skflow
from skflow.calibrators import (
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)

CALIBRATORS = {
    "standard": StandardNormalizationCalibrator(),
    "natsv": NATSVCalibrator(n_components=2),
    "whitening": WhiteningCalibrator(n_components=3, strength=1.0),
    "whitening_zca": WhiteningCalibrator(method="zca", strength=0.5),
    "flow": NormalizingFlowCalibrator(
        n_levels=2, n_steps=2, hidden_width=3, learning_rate=1e-5, random_state=0
    ),
    "flow_affine": NormalizingFlowCalibrator(
        n_levels=1,
        n_steps=2,
        hidden_width=3,
        coupling="affine",
        permutation="lu",
        learning_rate=1e-5,
        random_state=0,
    ),
    "flow_strength": NormalizingFlowCalibrator(
        n_levels=2, n_steps=2, hidden_width=3, strength=0.5, learning_rate=1e-5, random_state=0
    ),
}


def main():
    """Write the files of the version that is installed."""
    directory = Path(__file__).parent / skflow.__version__
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(64, 5)) @ rng.normal(size=(5, 5)) + 3
    expected = {"X": X[:20]}
    for name, calibrator in CALIBRATORS.items():
        calibrator.fit(X)
        (directory / f"{name}.pickle").write_bytes(pickle.dumps(calibrator, protocol=4))
        calibrator.save_pretrained(directory / name)
        expected[name] = calibrator.transform(X[:20])
    np.savez(directory / "expected.npz", **expected)


if __name__ == "__main__":
    main()
