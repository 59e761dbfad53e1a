"""Time of the public calls, each beside a peer or the work that it cannot do without, in one run.

    python benchmarks/bench_public_calls.py [--quick] [--only one_row]

One thread, processor time. The calls of a row take turns, `--repeats` times, and the least time of each
counts; the ratio is that of the first call to the sum of the others. Data are Gaussian, with the decaying
spectrum and the mean off the origin that sentence vectors have.
"""

import argparse
import os
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import numpy as np
import scipy.linalg
import torch
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skflow import (
    CosineSimilarityRegressor,
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from skflow.flows import Glow
from skflow.flows._training import Trainer

N_FEATURES = 768


def vectors(n_rows, n_features=N_FEATURES, smallest=0.02):
    """Return float32 rows whose standard deviations fall from 1 to `smallest`."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((n_features, n_features)))[0]
    axes = (axes * np.geomspace(1, smallest, n_features)[:, np.newaxis]).astype(np.float32)
    mean = 0.3 * rng.standard_normal(n_features, dtype=np.float32)
    return rng.standard_normal((n_rows, n_features), dtype=np.float32) @ axes + mean


def updates(X):
    """Return a call that does the updates of one epoch over X, and nothing else."""
    batches = torch.tensor(X).split(64)

    flow = Glow(X.shape[1], generator=torch.Generator().manual_seed(0))
    flow.initialize(batches[0])
    trainer = Trainer(flow, learning_rate=1e-3, weight_decay=0.01, max_grad_norm=1.0)

    def run():
        for batch in batches:
            trainer.step(batch)

    return run


def product(X):
    matrix = np.ones((X.shape[1], X.shape[1]), dtype=X.dtype)
    return lambda: X @ matrix


def flow_fit(n_rows):
    X = vectors(n_rows)
    yield "flow fit / its updates", [NormalizingFlowCalibrator(random_state=0), updates(X)], X
    kinds = [NormalizingFlowCalibrator(permutation=kind, random_state=0) for kind in ("random", "reverse")]
    yield "flow fit, random / reverse", kinds, X
    square = np.cov(X.T.astype(np.float64))
    peers = [
        NormalizingFlowCalibrator(random_state=0),
        lambda: scipy.linalg.eigh(square),
        lambda: scipy.linalg.svd(square),
        product(X),
    ]
    half = NormalizingFlowCalibrator(strength=0.5, random_state=0)
    yield "flow fit, strength 0.5 / strength 1 + eigh + svd + product", [half, *peers], X


def flow_transform(n_rows):
    X = vectors(n_rows)
    half, full = (NormalizingFlowCalibrator(strength=s, random_state=0).fit(X[:9600]) for s in (0.5, 1.0))
    calls = [lambda: half.transform(X), lambda: full.transform(X), product(X), product(X)]
    yield "flow transform, strength 0.5 / strength 1 + 2 products", calls, X


def whitening(n_rows):
    X = vectors(n_rows)
    pca = PCA(whiten=True, svd_solver="covariance_eigh")
    yield "whitening fit / PCA fit", [WhiteningCalibrator(strength=1.0), pca], X
    for smallest in (0.02, 1e-4):
        X = vectors(n_rows, smallest=smallest)
        whiten, peer = (
            WhiteningCalibrator(strength=1.0).fit(X),
            PCA(whiten=True, svd_solver="covariance_eigh").fit(X),
        )
        calls = [lambda whiten=whiten, X=X: whiten.transform(X), lambda peer=peer, X=X: peer.transform(X)]
        yield f"whitening transform / PCA transform, deviations from {smallest} to 1", calls, X


def one_row(n_rows):
    X = vectors(2000)
    pca = PCA(whiten=True).fit(X)
    for name, estimator in {
        "flow": NormalizingFlowCalibrator(random_state=0),
        "flow of strength 0.5": NormalizingFlowCalibrator(strength=0.5, random_state=0),
        "whitening": WhiteningCalibrator(strength=1.0),
        "NATSV": NATSVCalibrator(),
    }.items():
        estimator.fit(X)
        calls = [lambda e=e: [e.transform(X[:1]) for _ in range(100)] for e in (estimator, pca)]
        yield f"100 transforms of one row: {name} / PCA", calls, X


def imports(n_rows):
    def importing(name):
        return lambda: subprocess.run([sys.executable, "-c", f"import {name}"], check=True)

    yield "import skflow / import sklearn", [importing("skflow"), importing("sklearn")], None


def grid_search(n_rows):
    """Search over eight calibrators by five folds, with a look-up in place of a filled cache."""
    n_pairs = n_rows // 12
    sentences = np.array([f"sentence {i}" for i in range(2 * n_pairs)])
    table = dict(zip(sentences, vectors(2 * n_pairs), strict=True))
    pairs, scores = sentences.reshape(-1, 2), np.random.default_rng(0).uniform(0, 5, n_pairs)
    embed = FunctionTransformer(lambda texts: np.stack([table[text] for text in texts]))
    candidates = ["passthrough", StandardNormalizationCalibrator(), NATSVCalibrator(), NATSVCalibrator(7)]
    candidates += [WhiteningCalibrator(strength=s) for s in (0.25, 0.5, 1.0)]
    candidates += [NormalizingFlowCalibrator(random_state=0)]
    encoder = Pipeline([("embed", embed), ("calibrate", "passthrough")])
    search = GridSearchCV(
        CosineSimilarityRegressor(encoder), {"encoder__calibrate": candidates}, cv=5, refit=False
    )
    X = vectors(2 * n_pairs)
    n_train = len(X) * 4 // 5

    def calibrators_alone():
        for calibrator in candidates[1:]:
            for _ in range(5):
                calibrator.fit(X[:n_train]).transform(X[n_train:])

    yield "grid search / its fits and transforms", [lambda: search.fit(pairs, scores), calibrators_alone], X


GROUPS = (flow_fit, flow_transform, whitening, one_row, imports, grid_search)


def seconds(call):
    began = sum(os.times()[:4])
    start = time.process_time()
    call()
    own = time.process_time() - start
    return max(own, sum(os.times()[:4]) - began) if own < 0.01 else own


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="fewer rows, three repeats")
    parser.add_argument("--only", choices=[group.__name__ for group in GROUPS])
    args = parser.parse_args()
    torch.set_num_threads(1)
    repeats = min(args.repeats, 3) if args.quick else args.repeats
    sizes = {flow_fit: 9600, flow_transform: 20_000, whitening: 19_200, one_row: 0, imports: 0}
    for group in GROUPS:
        if args.only not in (None, group.__name__):
            continue
        n_rows = sizes.get(group, 16_500)  # sentences of STS-B
        for name, calls, X in group(n_rows // 4 if args.quick and group is not flow_fit else n_rows):
            calls = [call if not hasattr(call, "fit") else lambda e=call, X=X: e.fit(X) for call in calls]
            times = [[seconds(call) for call in calls] for _ in range(repeats)]
            least = [min(of_call) for of_call in zip(*times, strict=True)]
            parts = " + ".join(f"{1e3 * t:.1f}" for t in least[1:])
            print(f"{least[0] / sum(least[1:]):6.2f}  {name}  ({1e3 * least[0]:.1f} / {parts} ms)")


if __name__ == "__main__":
    main()
