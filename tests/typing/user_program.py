"""A user's program, of which `mypy --strict` finds every type: see test_typing.py, which runs mypy on it."""

from typing import assert_type

import numpy as np

from skflow import (
    BertEmbedder,
    CosineSimilarityClassifier,
    CosineSimilarityRegressor,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from skflow.datasets import load_mini_sts, load_sts
from skflow.evaluation import evaluate_pairs
from skflow.metrics import uniformity

data = load_mini_sts()
assert_type(data.pairs, np.ndarray)
assert_type(data.unlabeled, list[str])
pairs, y = load_mini_sts(return_X_y=True)
assert_type(y, np.ndarray)
assert_type(load_sts("stsb", split="dev").score, np.ndarray)

embedder = BertEmbedder("a-model", layers="first_last", pooling="mean")
assert_type(embedder.fit(data.unlabeled), BertEmbedder)
X = embedder.transform(data.unlabeled)
assert_type(X, np.ndarray)

whitening = WhiteningCalibrator(strength="auto")
assert_type(whitening.fit(X), WhiteningCalibrator)
assert_type(whitening.partial_fit(X, sample_weight=np.ones(len(X))), WhiteningCalibrator)
assert_type(whitening.fit_transform(X), np.ndarray)
assert_type(whitening.strength_, float)
assert_type(StandardNormalizationCalibrator().set_output(transform="pandas"), StandardNormalizationCalibrator)

flow = NormalizingFlowCalibrator(max_epochs=0.5, random_state=0).fit(X)
assert_type(flow, NormalizingFlowCalibrator)
assert_type(flow.score_samples(X), np.ndarray)
assert_type(flow.set_params(max_epochs=1), NormalizingFlowCalibrator)

regressor = CosineSimilarityRegressor(embedder).fit(pairs, y)
assert_type(regressor.predict(pairs), np.ndarray)
assert_type(regressor.score(pairs, y), float)
assert_type(CosineSimilarityClassifier(embedder).fit(pairs, y > 2).predict(pairs), np.ndarray)
print(evaluate_pairs(embedder, pairs, y), uniformity(X))

whitening.transfrom(X)  # type: ignore[attr-defined]
whitening.fit(X, sample_weights=np.ones(len(X)))  # type: ignore[call-arg]
load_mini_sts(subset="easy")  # type: ignore[call-overload]
