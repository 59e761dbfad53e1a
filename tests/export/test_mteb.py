"""A task of the MTEB benchmark on an exported model, from local data."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sklearn.pipeline import make_pipeline

from skflow.calibrators import WhiteningCalibrator
from skflow.datasets import load_mini_sts
from skflow.embedders import BertEmbedder
from skflow.export import to_sentence_transformer
from skflow.similarity import CosineSimilarityRegressor

from .conftest import LOADING


def test_sts_task(tiny_bert, tmp_path):
    mteb = pytest.importorskip("mteb")
    from datasets import Dataset, DatasetDict

    sts = load_mini_sts()
    regressor = CosineSimilarityRegressor(make_pipeline(BertEmbedder(tiny_bert), WhiteningCalibrator()))
    regressor.fit(sts.pairs)
    to_sentence_transformer(regressor.encoder_).save(str(tmp_path))

    task = mteb.get_task("STSBenchmark")
    columns = {
        "sentence1": sts.pairs[:, 0].tolist(),
        "sentence2": sts.pairs[:, 1].tolist(),
        "score": sts.score,
    }
    task.dataset = DatasetDict({"test": Dataset.from_dict(columns)})
    task.data_loaded = True
    model = SentenceTransformer(str(tmp_path), **LOADING)
    result = mteb.evaluate(model, task, cache=None, show_progress_bar=False)
    scores = result.task_results[0].scores["test"][0]
    assert scores["cosine_spearman"] == pytest.approx(regressor.score(sts.pairs, sts.score), abs=1e-4)
    # The similarity that the model itself declares.
    assert scores["spearman"] == pytest.approx(scores["cosine_spearman"], abs=1e-6)
    assert np.abs(scores["cosine_spearman"]) > 0.05
