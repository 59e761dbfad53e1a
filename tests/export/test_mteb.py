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


# mteb calls what is deprecated, in itself and in sentence-transformers.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_sts_task(tiny_bert, tmp_path):
    mteb = pytest.importorskip("mteb")
    from datasets import Dataset, DatasetDict

    sts = load_mini_sts(subset="hard")
    is_short = np.char.str_len(sts.pairs.astype(str)).max(axis=1) <= 60  # the tiny encoder takes 64 tokens
    pairs, score = sts.pairs[is_short], sts.score[is_short]
    assert len(pairs) > 100
    regressor = CosineSimilarityRegressor(make_pipeline(BertEmbedder(tiny_bert), WhiteningCalibrator()))
    regressor.fit(pairs)
    to_sentence_transformer(regressor.encoder_).save(str(tmp_path))

    task = mteb.get_task("STS12")
    columns = {"sentence1": pairs[:, 0].tolist(), "sentence2": pairs[:, 1].tolist(), "score": score}
    task.dataset = DatasetDict({"test": Dataset.from_dict(columns)})
    task.data_loaded = True
    model = SentenceTransformer(str(tmp_path), **LOADING)
    result = mteb.evaluate(model, task, cache=None, show_progress_bar=False)
    scores = result.task_results[0].scores["test"][0]
    assert scores["cosine_spearman"] == pytest.approx(regressor.score(pairs, score), abs=1e-4)
    # The similarity that the model itself declares.
    assert scores["spearman"] == pytest.approx(scores["cosine_spearman"], abs=1e-6)
    assert np.abs(scores["cosine_spearman"]) > 0.05
