"""ONNX models in onnxruntime against the calibrators that they come from."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline

from skflow.calibrators import (
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from skflow.embedders import BertEmbedder
from skflow.export import to_onnx

from .conftest import assert_close

onnx = pytest.importorskip("onnx", reason="the onnx extra installs it")
onnxruntime = pytest.importorskip("onnxruntime", reason="the onnx extra installs it")

# Learned far enough that no layer is the identity any more.
TRAINED = {"max_epochs": 6, "learning_rate": 3e-3, "random_state": 0}


def vectors(n_features, *, seed=0, n_samples=300):
    rng = np.random.RandomState(seed)
    mixing = rng.standard_normal((n_features, n_features))
    return (rng.standard_normal((n_samples, n_features)) @ mixing + 3).astype(np.float32)


def run(path, X):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["Z"], {"X": X})[0]


def check(calibrator, X, tmp_path, **options):
    """Fit, export, and compare on the training rows, a single row and no rows at all."""
    calibrator.fit(X)
    to_onnx(calibrator, tmp_path / "calibrator.onnx", **options)
    expected = calibrator.transform(X)
    assert_close(run(tmp_path / "calibrator.onnx", X), expected)
    single = run(tmp_path / "calibrator.onnx", X[:1])
    np.testing.assert_allclose(single, expected[:1], rtol=0, atol=1e-5 * np.abs(expected).max())
    assert run(tmp_path / "calibrator.onnx", X[:0]).shape == (0, expected.shape[1])


@pytest.mark.parametrize(
    "calibrator",
    [
        StandardNormalizationCalibrator(),
        NATSVCalibrator(n_components=0),
        NATSVCalibrator(n_components=3),
        WhiteningCalibrator(),
        WhiteningCalibrator(n_components=4, strength=0.5),
        WhiteningCalibrator(n_components=4, method="zca"),
        make_pipeline(StandardNormalizationCalibrator(), NATSVCalibrator(n_components=2)),
        make_pipeline(
            NATSVCalibrator(), "passthrough", WhiteningCalibrator(6), NormalizingFlowCalibrator(**TRAINED)
        ),
        make_pipeline(make_pipeline(WhiteningCalibrator(7), None), StandardNormalizationCalibrator()),
    ],
    ids=str,
)
def test_every_calibrator_and_chain(calibrator, tmp_path):
    check(calibrator, vectors(11), tmp_path)


@pytest.mark.parametrize("permutation", ["reverse", "random", "lu"])
@pytest.mark.parametrize("coupling", ["additive", "affine"])
@pytest.mark.parametrize("n_features", [1, 2, 13])
def test_every_flow(n_features, coupling, permutation, tmp_path):
    flow = NormalizingFlowCalibrator(coupling=coupling, permutation=permutation, **TRAINED)
    X = vectors(n_features)
    check(flow, X, tmp_path)
    if n_features > 1:
        untrained = clone(flow).set_params(max_epochs=0)
        assert np.abs(untrained.fit(X).transform(X) - flow.transform(X)).max() > 0.01


@settings(max_examples=10, deadline=None)
@given(
    n_features=st.integers(1, 20),
    n_levels=st.integers(1, 4),
    n_steps=st.integers(1, 4),
    coupling=st.sampled_from(["additive", "affine"]),
    permutation=st.sampled_from(["reverse", "random", "lu"]),
)
def test_every_shape_of_flow(tmp_path_factory, n_features, n_levels, n_steps, coupling, permutation):
    flow = NormalizingFlowCalibrator(
        n_levels=n_levels,
        n_steps=n_steps,
        hidden_width=5,
        coupling=coupling,
        permutation=permutation,
        max_epochs=1,
        random_state=0,
    )
    check(flow, vectors(n_features, n_samples=100), tmp_path_factory.mktemp("flow"))


@pytest.mark.parametrize("scale", [1e-4, 1e4])
@pytest.mark.parametrize(
    "calibrator",
    [
        StandardNormalizationCalibrator(),
        NATSVCalibrator(),
        WhiteningCalibrator(),
        NormalizingFlowCalibrator(**TRAINED),
    ],
    ids=str,
)
def test_extraordinary_scales(calibrator, scale, tmp_path):
    X = vectors(6) * np.float32(scale)
    X[:, 0] = 5 * scale  # constant
    check(calibrator, X, tmp_path)


@pytest.mark.parametrize("permutation", ["reverse", "lu"])
def test_flow_of_vectors_far_off_the_origin(permutation, tmp_path):
    # Of several hundred standard deviations, float32 leaves five digits of a single one.
    X = vectors(8)
    X += 800 * X.std(axis=0)
    flow = NormalizingFlowCalibrator(coupling="affine", permutation=permutation, **TRAINED)
    check(flow, X, tmp_path)
    assert (flow.scale_ == 1).all()
    assert (flow.offset_ == 0).all()


def test_learned_mixing_of_many_features(tmp_path):
    # As wide as sentence vectors: the factors of the mixing are far from orthogonal.
    flow = NormalizingFlowCalibrator(permutation="lu", learning_rate=1e-5, random_state=0)
    X = np.random.RandomState(0).standard_normal((200, 384)).astype(np.float32)
    check(flow, 0.05 * X + 0.1, tmp_path)


def test_computes_in_float64_where_transform_does(tmp_path):
    # Deviations from 1 to 1e-5, on top of a large mean: float32 products would be off by a tenth.
    rng = np.random.RandomState(0)
    rotation = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    X = ((rng.standard_normal((500, 8)) * np.logspace(0, -5, 8)) @ rotation).astype(np.float32)
    check(WhiteningCalibrator(tol=0), X, tmp_path)


@pytest.mark.parametrize("opset", [13, 15, 18, onnx.defs.onnx_opset_version() - 1])
def test_opsets(opset, tmp_path):
    flow = NormalizingFlowCalibrator(coupling="affine", permutation="lu", **TRAINED)
    check(make_pipeline(WhiteningCalibrator(), flow), vectors(9), tmp_path, opset=opset)
    model = onnx.load(tmp_path / "calibrator.onnx")
    assert [(each.domain, each.version) for each in model.opset_import] == [("", opset)]


def test_signature(tmp_path):
    to_onnx(WhiteningCalibrator(n_components=3).fit(vectors(5)), tmp_path / "a.onnx")
    model = onnx.load(tmp_path / "a.onnx")
    assert model.producer_name == "skflow"
    assert model.doc_string == "WhiteningCalibrator"
    for value, name, width in [(model.graph.input[0], "X", 5), (model.graph.output[0], "Z", 3)]:
        assert value.name == name
        tensor = value.type.tensor_type
        assert tensor.elem_type == onnx.TensorProto.FLOAT
        batch, features = tensor.shape.dim
        assert (batch.dim_param, features.dim_value) == ("n_samples", width)


def test_the_tail_of_a_pipeline(tiny_bert, texts, transform, tmp_path):
    pipeline = make_pipeline(
        BertEmbedder(tiny_bert), StandardNormalizationCalibrator(), NormalizingFlowCalibrator(**TRAINED)
    )
    expected = transform(pipeline, texts)
    to_onnx(pipeline[1:], tmp_path / "tail.onnx")
    assert_close(run(tmp_path / "tail.onnx", pipeline[0].transform(texts)), expected)


def test_same_calibrator_same_file(tmp_path):
    flow = NormalizingFlowCalibrator(random_state=0).fit(vectors(6))
    for name in ("a", "b"):
        to_onnx(flow, str(tmp_path / name))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("steps", "error", "message"),
    [
        ([("embed", BertEmbedder()), ("norm", None)], TypeError, r"step 'embed' \(BertEmbedder\) takes text"),
        ([("reduce", PCA(2))], TypeError, r"step 'reduce' \(PCA\) cannot be exported"),
        ([("calibrate", NATSVCalibrator())], NotFittedError, r"step 'calibrate' \(NATSV.*is not fitted"),
        ([("calibrate", "passthrough")], ValueError, "has no calibrator"),
    ],
)
def test_what_cannot_be_exported(steps, error, message, tmp_path):
    with pytest.raises(error, match=message):
        to_onnx(Pipeline(steps), tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())


def test_other_flows(tmp_path):
    pytest.importorskip("zuko")
    pipeline = Pipeline([("calibrate", NormalizingFlowCalibrator("maf", random_state=0))]).fit(vectors(4))
    with pytest.raises(ValueError, match=r"step 'calibrate' \(Norm.* flow='maf', where only 'glow'"):
        to_onnx(pipeline, tmp_path / "a.onnx")


def test_widths_that_do_not_fit(tmp_path):
    steps = [WhiteningCalibrator(n_components=2).fit(vectors(4)), NATSVCalibrator().fit(vectors(4))]
    with pytest.raises(ValueError, match="was fitted on 4 features, but what comes before it returns 2"):
        to_onnx(make_pipeline(*steps), tmp_path / "a.onnx")


@pytest.mark.parametrize("opset", [12, 0, 10_000])
def test_opset_out_of_range(opset, tmp_path):
    with pytest.raises(ValueError, match=rf"opset={opset} is out of range; expected an int from 13 to"):
        to_onnx(StandardNormalizationCalibrator().fit(vectors(2)), tmp_path / "a.onnx", opset=opset)


def test_without_onnx(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'scikit-bertflow\[onnx\]'"):
        to_onnx(StandardNormalizationCalibrator().fit(vectors(2)), tmp_path / "a.onnx")
