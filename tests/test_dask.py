"""The same code on a cluster: searches under joblib's dask backend, text embedded partition by partition."""

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from skflow.calibrators import NATSVCalibrator, NormalizingFlowCalibrator, WhiteningCalibrator
from skflow.datasets import load_mini_sts
from skflow.similarity import CosineSimilarityRegressor

distributed = pytest.importorskip("distributed", reason="the dask extra installs it")


@pytest.fixture(scope="module")
def client():
    """Two worker processes on this machine."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def encoder(calibrator="passthrough"):
    embed = make_pipeline(TfidfVectorizer(), TruncatedSVD(16, random_state=0))
    return Pipeline([("embed", embed), ("calibrate", calibrator)])


def test_grid_search_on_a_cluster_gives_what_it_gives_here(client):
    pairs, gold = load_mini_sts(subset="hard", return_X_y=True)
    search = GridSearchCV(
        CosineSimilarityRegressor(encoder(), extra=["It rained all day.", "The train is late."]),
        {"encoder__calibrate": ["passthrough", NATSVCalibrator(2), WhiteningCalibrator(8)]},
        cv=3,
        n_jobs=-1,
    )
    with joblib.parallel_config(backend="dask"):
        search.fit(pairs, gold)
    done_by = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert sum(done_by.values()) > 0  # the work was done there
    here = GridSearchCV(search.estimator, search.param_grid, cv=3).fit(pairs, gold)
    for fold in range(3):
        key = f"split{fold}_test_score"
        assert_allclose(search.cv_results_[key], here.cv_results_[key], atol=1e-3)
    assert_allclose(search.predict(pairs), here.predict(pairs), atol=1e-4)


def texts_and_encoder():
    texts = load_mini_sts(subset="hard").pairs.ravel().tolist()
    return texts, encoder(WhiteningCalibrator()).fit(texts)


def test_a_bag_of_text(client):
    bags = pytest.importorskip("dask.bag")
    texts, fitted = texts_and_encoder()
    bag = bags.from_sequence(texts, npartitions=5).map(str.strip)  # partitions are iterators from here on
    vectors = bag.map_partitions(lambda part: fitted.transform(list(part)))
    assert_allclose(np.vstack(vectors.compute()), fitted.transform(texts), atol=1e-12)


def test_an_array_of_text(client):
    arrays = pytest.importorskip("dask.array")
    texts, fitted = texts_and_encoder()
    expected = fitted.transform(texts)
    column = arrays.from_array(np.array(texts, dtype=object), chunks=100)
    vectors = column.map_blocks(
        fitted.transform,
        new_axis=1,
        chunks=(column.chunks[0], (expected.shape[1],)),
        meta=np.empty((0, 0), dtype=expected.dtype),
    )
    assert vectors.shape == expected.shape
    assert_allclose(vectors.compute(), expected, atol=1e-12)
    # A row in the middle needs its own partition only, and further steps follow lazily.
    assert_allclose(vectors[150:151].compute(), expected[150:151], atol=1e-12)
    assert_allclose(vectors.mean(axis=0).compute(), expected.mean(axis=0), atol=1e-12)


@pytest.mark.slow
def test_a_real_encoder_and_a_flow_on_a_cluster(client, minilm):
    bags = pytest.importorskip("dask.bag")
    from skflow.embedders import BertEmbedder

    texts = load_mini_sts(subset="hard").pairs[:100].ravel().tolist()
    fitted = make_pipeline(
        BertEmbedder(minilm, layers=0, pooling="mean", device="cpu"),
        NormalizingFlowCalibrator(device="cpu", random_state=0),
    ).fit(texts)
    vectors = bags.from_sequence(texts, npartitions=2).map_partitions(
        lambda part: fitted.transform(list(part))
    )
    assert_allclose(np.vstack(vectors.compute()), fitted.transform(texts), atol=1e-4)
