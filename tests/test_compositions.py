"""The compositions that users write first, with the real encoder's lowest layer on the set that ships."""

import io
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from skflow import (
    BertEmbedder,
    CosineSimilarityRegressor,
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from skflow.datasets import load_mini_sts


@pytest.fixture(scope="module")
def mini():
    return load_mini_sts(subset="hard")


@pytest.fixture
def embedder(minilm, tmp_path):
    return BertEmbedder(minilm, layers=0, pooling="mean", cache=tmp_path / "vectors.sqlite")


@pytest.fixture
def encoder(embedder):
    calibrator = NormalizingFlowCalibrator(max_epochs=2, random_state=0)
    return Pipeline([("embed", embedder), ("calibrate", calibrator)])


CALIBRATORS = [
    "passthrough",
    StandardNormalizationCalibrator(),
    NATSVCalibrator(n_components=6),
    make_pipeline(StandardNormalizationCalibrator(), NATSVCalibrator(n_components=6)),
    WhiteningCalibrator(),
    NormalizingFlowCalibrator(max_epochs=2, random_state=0),
]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_grid_search_over_calibrators(encoder, mini, n_jobs):
    search = GridSearchCV(
        CosineSimilarityRegressor(encoder), {"encoder__calibrate": CALIBRATORS}, cv=3, n_jobs=n_jobs
    )
    search.fit(mini.pairs, mini.score)
    scores = search.cv_results_["mean_test_score"]
    assert scores.shape == (6,)
    assert np.isfinite(scores).all()
    # On an untuned layer the features' scales alone mislead: standard normalization gains (Li et al. 2020,
    # Table 5).
    assert scores[1] > scores[0]
    if n_jobs:
        return
    # A candidate's figure is that of the candidate alone.
    for candidate, score in zip(CALIBRATORS, scores, strict=True):
        model = CosineSimilarityRegressor(Pipeline([("embed", encoder[0]), ("calibrate", candidate)]))
        assert cross_val_score(model, mini.pairs, mini.score, cv=3).mean() == pytest.approx(score, abs=1e-6)
    vectors = search.best_estimator_.encoder_.transform(["A cat.", "A dog."])
    assert vectors.shape == (2, 384)


def test_parameters_of_the_flow_by_likelihood(encoder, mini):
    sentences = mini.pairs.ravel().tolist()
    grid = {"calibrate__n_levels": [1, 3], "calibrate__max_epochs": [0, 2]}
    search = GridSearchCV(encoder, grid, cv=2).fit(sentences)
    by_epochs = {
        epochs: np.mean(
            [
                score
                for params, score in zip(
                    search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
                )
                if params["calibrate__max_epochs"] == epochs
            ]
        )
        for epochs in (0, 2)
    }
    assert by_epochs[2] > by_epochs[0]
    assert search.best_params_["calibrate__max_epochs"] == 2
    assert search.score(sentences) == pytest.approx(search.best_estimator_.score(sentences))


def test_calibrator_before_a_classifier(embedder, mini):
    # Which pairs name a negation is no secret to word vectors: "not", "never" and "no" are among the
    # features.
    sentences = mini.pairs[:, 1]
    labels = np.array([any(w in s.lower().split() for w in ("not", "no", "never")) for s in sentences])
    for calibrator in (WhiteningCalibrator(strength=0.5), NormalizingFlowCalibrator(random_state=0)):
        model = make_pipeline(
            embedder, calibrator, LogisticRegression(max_iter=1000, class_weight="balanced")
        )
        assert cross_val_score(model, sentences, labels, cv=3, scoring="roc_auc").mean() > 0.8


def test_pipeline_with_memory(embedder, mini, tmp_path):
    sentences = mini.pairs[:100].ravel().tolist()
    calibrator = NormalizingFlowCalibrator(random_state=0)
    plain = make_pipeline(embedder, calibrator).fit(sentences).transform(sentences)
    for _ in range(2):
        remembering = make_pipeline(embedder, calibrator, StandardScaler(), memory=str(tmp_path / "memory"))
        remembering.fit(sentences)
        assert_array_equal(remembering[:-1].transform(sentences), plain)


def test_feature_union(embedder, mini):
    sentences = mini.pairs[:50].ravel().tolist()
    last = BertEmbedder(embedder.model_name_or_path, layers="last", pooling="cls")
    union = FeatureUnion([("lowest", make_pipeline(embedder, WhiteningCalibrator())), ("last", last)])
    vectors = union.fit_transform(sentences)
    assert vectors.shape == (100, 768)
    assert_allclose(vectors[:, 384:], last.transform(sentences), atol=1e-5)
    assert len(union.get_feature_names_out()) == 768


def test_column_transformer_over_a_text_column(encoder, mini):
    pd = pytest.importorskip("pandas", reason="an optional dependency")
    frame = pd.DataFrame({"text": mini.pairs[:50, 0], "score": mini.score[:50]})
    if parse_version(sklearn.__version__) >= parse_version("1.7"):  # older ones drop the index of a Series
        frame.index += 7
    columns = ColumnTransformer([("vectors", encoder, "text"), ("score", StandardScaler(), ["score"])])
    columns.set_output(transform="pandas")
    out = columns.fit_transform(frame)
    assert out.shape == (50, 385)
    assert list(out.index) == list(frame.index)
    assert out.columns[0] == "vectors__normalizingflowcalibrator0"
    expected = encoder.fit(frame["text"]).transform(frame["text"])
    assert_allclose(out.iloc[:, :384], expected, atol=1e-6)


def test_saved_pipeline_gives_the_same_vectors_in_a_fresh_process(encoder, mini, tmp_path):
    sentences = mini.pairs[:60].ravel().tolist()
    encoder.set_params(embed__cache=None)
    vectors = encoder.fit(sentences).transform(sentences)
    joblib.dump(encoder, tmp_path / "encoder.joblib")
    joblib.dump(sentences, tmp_path / "sentences.joblib")
    # The parameters of the flow, 0.3 MB, and not the 90 MB of the encoder's weights.
    assert (tmp_path / "encoder.joblib").stat().st_size < 1e6
    code = (
        "import joblib, numpy, sys; d = sys.argv[1]; "
        "Z = joblib.load(d + '/encoder.joblib').transform(joblib.load(d + '/sentences.joblib')); "
        "numpy.save(d + '/vectors.npy', Z)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert_array_equal(np.load(tmp_path / "vectors.npy"), vectors)


@pytest.mark.parametrize("calibrator", CALIBRATORS[1:], ids=lambda c: type(c).__name__)
def test_pickles_name_no_torch(embedder, calibrator, mini):
    encoder = make_pipeline(embedder, calibrator)
    model = CosineSimilarityRegressor(encoder).fit(mini.pairs[:100])
    looked_up = []

    class Recorder(pickle.Unpickler):
        def find_class(self, module, name):
            looked_up.append(module)
            return super().find_class(module, name)

    loaded = Recorder(io.BytesIO(pickle.dumps(model))).load()
    assert {module.split(".")[0] for module in looked_up} <= {
        "skflow", "sklearn", "numpy", "builtins", "pathlib", "copyreg", "collections", "_codecs",
    }  # fmt: skip
    assert_array_equal(loaded.predict(mini.pairs[:100]), model.predict(mini.pairs[:100]))
