"""Tell answers from other sentences: QNLI, Table 4 of the BERT-flow paper.

``python examples/qnli.py --data path/to/QNLI/dev.tsv`` prints the area under the ROC curve x 100 of the
cosine, raw and after each calibrator. Those are fitted on the questions and sentences without labels (the
"target" setting). The vectors are averages of two layers over 64 tokens. The paper starts from a BERT-base
tuned on NLI, to be given as `--model`, and has 70.30 raw and 76.17 after the flow. Without `--data` a few
made-up pairs show how it runs.
"""

import argparse
import csv

from sklearn.pipeline import make_pipeline

from skflow import (
    BertEmbedder,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from skflow.evaluation import evaluate_pairs

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--data", help="dev.tsv of GLUE's QNLI; made-up pairs if not given")
parser.add_argument("--model", default="bert-base-uncased", help="name or directory of the encoder")
parser.add_argument("--cache", help="file that keeps the vectors of sentences")
args = parser.parse_args()

pairs = [
    ("Where does the cat sleep?", "The cat sleeps on the sofa."),
    ("Who plays the piano?", "My sister plays the piano."),
    ("When does the train leave?", "The train is red."),
    ("What is cheese made of?", "It rained all day."),
]
label = ["entailment", "entailment", "not_entailment", "not_entailment"]
if args.data:
    with open(args.data, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    pairs = [(row["question"], row["sentence"]) for row in rows]
    label = [row["label"] for row in rows]
is_answer = [name == "entailment" for name in label]

embedder = BertEmbedder(args.model, layers="first_last", pooling="mean", max_length=64, cache=args.cache)
calibrators = {"raw": "passthrough", "SN": StandardNormalizationCalibrator()}
if args.data:
    calibrators["whitening"] = WhiteningCalibrator(strength=1.0)
    calibrators["flow"] = NormalizingFlowCalibrator(random_state=0)
for name, calibrator in calibrators.items():
    encoder = make_pipeline(embedder, calibrator)
    print(name, evaluate_pairs(encoder, pairs, is_answer, metric="auc", n_resamples=1000), sep="\n")
