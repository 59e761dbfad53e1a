"""Pickles, skops files and the safetensors format of every calibrator."""

import contextlib
import copy
import io
import json
import os
import pickle
import re
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.pipeline import make_pipeline

import skflow
from skflow._persistence import InconsistentSkflowVersionWarning, _pretrained, write_atomically
from skflow.calibrators import (
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from skflow.calibrators._base import BaseCalibrator
from skflow.embedders import BertEmbedder

CALIBRATORS = [
    StandardNormalizationCalibrator(),
    NATSVCalibrator(),
    NATSVCalibrator(n_components=0),
    WhiteningCalibrator(),
    WhiteningCalibrator(n_components=np.int64(3), method="zca", strength=np.float64(0.5), tol=0),
    NormalizingFlowCalibrator(n_levels=2, hidden_width=4, learning_rate=1e-5, random_state=0),
    NormalizingFlowCalibrator(
        coupling="affine", permutation="lu", hidden_width=4, learning_rate=1e-5, random_state=0
    ),
]
every_calibrator = pytest.mark.parametrize("calibrator", CALIBRATORS, ids=lambda c: str(c).replace("\n", ""))
RELEASES = Path(__file__).parent / "releases"
X = np.random.default_rng(0).normal(size=(150, 8)) @ np.random.default_rng(1).normal(size=(8, 8)) + 3
X[:, 5] = 7.0


def fitted(calibrator):
    return clone(calibrator).fit(X)


def assert_same_state(left, right):
    """Compare everything that two estimators hold, types and layouts included."""
    assert type(left) is type(right)
    left, right = left.__getstate__(), right.__getstate__()
    assert left.keys() == right.keys()
    for name in left:
        assert_same_value(left[name], right[name])


def assert_same_value(left, right):
    assert type(left) is type(right)
    if isinstance(left, np.ndarray):
        assert left.dtype == right.dtype
        assert left.flags.c_contiguous == right.flags.c_contiguous
        np.testing.assert_array_equal(left, right)
    elif isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            assert_same_value(left[key], right[key])
    elif isinstance(left, (list, tuple)):
        assert len(left) == len(right)
        for one, two in zip(left, right, strict=True):
            assert_same_value(one, two)
    else:
        assert left == right or (left != left and right != right)


def names_looked_up(data):
    """Return the module of everything that an unpickler asks for."""
    modules = set()

    class Recorder(pickle.Unpickler):
        def find_class(self, module, name):
            modules.add(module)
            return super().find_class(module, name)

    Recorder(io.BytesIO(data)).load()
    return modules


class TestPickle:
    @every_calibrator
    def test_names_numpy_and_skflow_only(self, calibrator):
        pipeline = make_pipeline(StandardNormalizationCalibrator(), calibrator).fit(X)
        for estimator, more in ((fitted(calibrator), set()), (pipeline, {"sklearn"})):
            for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
                modules = names_looked_up(pickle.dumps(estimator, protocol))
                packages = {module.partition(".")[0] for module in modules}
                assert packages <= {"skflow", "numpy", "builtins", "__builtin__", "copyreg", "_codecs", *more}

    @every_calibrator
    def test_round_trip(self, calibrator):
        calibrator = fitted(calibrator)
        for again in (pickle.loads(pickle.dumps(calibrator)), copy.deepcopy(calibrator)):
            assert_same_state(calibrator, again)
            np.testing.assert_array_equal(again.transform(X), calibrator.transform(X))

    def test_fresh_process(self, tmp_path):
        """Bit-identical output, float32 and float64, of files; the stamp is no attribute."""
        estimators = [fitted(calibrator) for calibrator in CALIBRATORS]
        estimators.append(make_pipeline(StandardNormalizationCalibrator(), NATSVCalibrator(2)).fit(X))
        joblib.dump(estimators, tmp_path / "estimators.joblib")
        (tmp_path / "estimators.pickle").write_bytes(pickle.dumps(estimators))
        joblib.dump(X, tmp_path / "X.joblib")
        script = """
        import pickle, sys, joblib
        import numpy as np
        X = joblib.load("X.joblib")
        loaded = joblib.load("estimators.joblib")
        with open("estimators.pickle", "rb") as file:
            also = pickle.load(file)
        assert "torch" not in sys.modules
        assert not any(hasattr(estimator, "_skflow_version") for estimator in loaded)
        outputs = [
            [estimator.transform(X), estimator.transform(X.astype(np.float32)), other.transform(X)]
            for estimator, other in zip(loaded, also, strict=True)
        ]
        joblib.dump(outputs, "outputs.joblib")
        """
        subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
            check=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        outputs = joblib.load(tmp_path / "outputs.joblib")
        for estimator, (double, single, other) in zip(estimators, outputs, strict=True):
            np.testing.assert_array_equal(double, estimator.transform(X))
            np.testing.assert_array_equal(other, double)
            np.testing.assert_array_equal(single, estimator.transform(X.astype(np.float32)))

    @every_calibrator
    def test_memory_mapped(self, calibrator, tmp_path):
        """joblib hands out read-only arrays that are pages of the file; nothing tries to write to them."""
        calibrator = fitted(calibrator)
        path = tmp_path / "calibrator.joblib"
        joblib.dump(calibrator, path)
        before = path.read_bytes()
        mapped = joblib.load(path, mmap_mode="r")
        arrays = [value for value in vars(mapped).values() if isinstance(value, np.memmap)]
        assert arrays
        assert not any(array.flags.writeable for array in arrays)
        Z = mapped.transform(X)
        np.testing.assert_array_equal(Z, calibrator.transform(X))
        if hasattr(mapped, "inverse_transform"):
            mapped.inverse_transform(Z)
        assert path.read_bytes() == before
        mapped.partial_fit(X)
        assert path.read_bytes() == before

    @pytest.mark.parametrize(
        ("calibrator", "n_arrays"),
        [
            (StandardNormalizationCalibrator(), 5 * 768),
            (NATSVCalibrator(), 768**2),
            (WhiteningCalibrator(), 2 * 768**2),
        ],
        ids=["standard", "natsv", "whitening"],
    )
    def test_size(self, calibrator, n_arrays):
        """As small as the parameters, 8 bytes each: covariance and axes, and a few vectors and names."""
        rows = np.random.default_rng(0).normal(size=(100, 768)).astype(np.float32)
        size = len(pickle.dumps(calibrator.fit(rows)))
        assert 8 * n_arrays < size < 8 * n_arrays + 50_000


class TestVersionStamp:
    @every_calibrator
    def test_same_version_is_silent(self, calibrator):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pickle.loads(pickle.dumps(fitted(calibrator)))

    @every_calibrator
    @pytest.mark.parametrize("version", ["0.0.1", "99.0"])
    def test_other_version_warns(self, calibrator, version, monkeypatch):
        calibrator = fitted(calibrator)
        with monkeypatch.context() as patch:
            patch.setattr("skflow._persistence._stamps.__version__", version)
            data = pickle.dumps(calibrator)
        message = f"{type(calibrator).__name__} was saved by skflow {version} .* loaded by skflow"
        with pytest.warns(InconsistentVersionWarning, match=message) as record:
            again = pickle.loads(data)
        assert len(record) == 1
        assert record[0].category is InconsistentSkflowVersionWarning
        assert record[0].message.original_skflow_version == version
        assert record[0].message.current_skflow_version == skflow.__version__
        np.testing.assert_array_equal(again.transform(X), calibrator.transform(X))

    def test_no_stamp_warns(self):
        calibrator = fitted(WhiteningCalibrator())
        state = calibrator.__getstate__()
        del state["_skflow_version"]
        with pytest.warns(InconsistentSkflowVersionWarning, match="saved by skflow unknown"):
            WhiteningCalibrator().__setstate__(state)

    def test_saved_directory_warns(self, tmp_path, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr("skflow._persistence._stamps.__version__", "0.0.1")
            fitted(WhiteningCalibrator()).save_pretrained(tmp_path)
        with pytest.warns(InconsistentSkflowVersionWarning, match=r"saved by skflow 0\.0\.1"):
            WhiteningCalibrator.from_pretrained(tmp_path)


class TestSkops:
    @every_calibrator
    def test_round_trip(self, calibrator, tmp_path):
        skops = pytest.importorskip("skops.io")
        for estimator in (fitted(calibrator), make_pipeline(NATSVCalibrator(), calibrator).fit(X)):
            skops.dump(estimator, tmp_path / "estimator.skops")
            untrusted = skops.get_untrusted_types(file=tmp_path / "estimator.skops")
            assert all(name.startswith("skflow.calibrators.") for name in untrusted)
            again = skops.load(tmp_path / "estimator.skops", trusted=untrusted)
            np.testing.assert_array_equal(again.transform(X), estimator.transform(X))

    def test_paths(self, tmp_path):
        # pathlib's classes are neither skflow's own nor the same on every system.
        skops = pytest.importorskip("skops.io")
        embedder = BertEmbedder(tmp_path / "encoder", cache=tmp_path / "vectors.sqlite")
        skops.dump(make_pipeline(embedder, WhiteningCalibrator()), tmp_path / "pipeline.skops")
        untrusted = skops.get_untrusted_types(file=tmp_path / "pipeline.skops")
        assert all(name.startswith("skflow.") for name in untrusted)
        again = skops.load(tmp_path / "pipeline.skops", trusted=untrusted)[0]
        assert again.model_name_or_path == str(tmp_path / "encoder")
        assert again.cache == str(tmp_path / "vectors.sqlite")
        assert embedder.model_name_or_path == tmp_path / "encoder"


class TestSavePretrained:
    @every_calibrator
    def test_round_trip(self, calibrator, tmp_path):
        calibrator = fitted(calibrator)
        directory = tmp_path / "new" / "directory"
        calibrator.save_pretrained(directory)
        again = type(calibrator).from_pretrained(str(directory))
        assert_same_state(calibrator, again)
        np.testing.assert_array_equal(again.transform(X), calibrator.transform(X))
        one, two = calibrator.partial_fit(X[:70] + 1), again.partial_fit(X[:70] + 1)
        if not isinstance(calibrator, NormalizingFlowCalibrator):  # whose optimizer's moments are not saved
            assert_same_state(one, two)

    @every_calibrator
    def test_nothing_is_pickled(self, calibrator, tmp_path, monkeypatch):
        fitted(calibrator).save_pretrained(tmp_path)
        names = sorted(path.name for path in tmp_path.iterdir())
        assert names[0] == "calibrator.json"
        assert names[1].startswith("parameters-")
        assert names[1].endswith(".safetensors")
        assert len(names) == 2

        def refuse(*args, **kwargs):
            raise AssertionError("something was unpickled")

        for name in ("load", "loads", "Unpickler", "_Unpickler"):
            monkeypatch.setattr(pickle, name, refuse)
        type(calibrator).from_pretrained(tmp_path)

    def test_readable_by_others(self, tmp_path):
        """The files are plain JSON and safetensors: no code of skflow is needed to get at the arrays."""
        from safetensors.numpy import load_file

        calibrator = fitted(WhiteningCalibrator(strength=0.5))
        calibrator.save_pretrained(tmp_path)
        config = json.loads((tmp_path / "calibrator.json").read_text())
        assert config["class"] == "WhiteningCalibrator"
        assert config["skflow_version"] == skflow.__version__
        assert config["params"] == calibrator.get_params()
        arrays = load_file(tmp_path / config["tensors"]["file"])
        np.testing.assert_array_equal(arrays["components_"], calibrator.components_)

    def test_names_and_output_container(self, tmp_path):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(X, columns=list("abcdefgh"))
        calibrator = NATSVCalibrator().set_output(transform="pandas").fit(frame)
        calibrator.save_pretrained(tmp_path)
        again = NATSVCalibrator.from_pretrained(tmp_path)
        assert list(again.feature_names_in_) == list("abcdefgh")
        pandas.testing.assert_frame_equal(again.transform(frame), calibrator.transform(frame))

    def test_base_class_loads_any(self, tmp_path):
        fitted(NATSVCalibrator()).save_pretrained(tmp_path)
        assert type(BaseCalibrator.from_pretrained(tmp_path)) is NATSVCalibrator

    def test_subclass_of_the_user(self, tmp_path):
        class Mine(NATSVCalibrator):
            pass

        fitted(Mine()).save_pretrained(tmp_path)
        assert type(Mine.from_pretrained(tmp_path)) is Mine
        with pytest.raises(ValueError, match="holds no usable NATSVCalibrator: it is a saved 'Mine'"):
            NATSVCalibrator.from_pretrained(tmp_path)

    def test_values_of_every_kind(self, tmp_path):
        values = {
            "nested_": {"a/b": (1, [2.5, None, True]), "a": {"b": np.arange(3)}, "text": "ä\ud800\n"},
            "collision_": {"a/b": np.zeros(2), "a": {"b": np.ones(2)}},
            "numbers_": [float("inf"), float("-inf"), float("nan"), 10**30, -0.0, 5e-324],
            "scalars_": (np.float32(0.1), np.int8(-3), np.bool_(True), np.float64(np.nan)),
            "fortran_": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
            "strided_": np.arange(10, dtype=np.int16)[::2],
            "empty_": np.empty((0, 3), dtype=np.float16),
            "zero_d_": np.array(3.0),
            "strings_": np.array(["x", "yy"], dtype=object),
        }
        calibrator = fitted(WhiteningCalibrator())
        vars(calibrator).update(values)
        calibrator.save_pretrained(tmp_path)
        again = WhiteningCalibrator.from_pretrained(tmp_path)
        for name, value in values.items():
            if name == "strided_":
                value = np.ascontiguousarray(value)
            assert_same_value(getattr(again, name), value)
        again.fortran_[0, 0] = 9  # loaded arrays are writable
        big_endian = np.arange(3, dtype=">f8")
        calibrator.big_endian_ = big_endian
        calibrator.save_pretrained(tmp_path)
        np.testing.assert_array_equal(WhiteningCalibrator.from_pretrained(tmp_path).big_endian_, big_endian)

    def test_not_fitted(self, tmp_path):
        with pytest.raises(NotFittedError):
            WhiteningCalibrator().save_pretrained(tmp_path / "x")
        assert not (tmp_path / "x").exists()

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("random_state", np.random.RandomState(0)),
            ("flow", lambda n_features: None),
            ("verbose", 1j),
            ("device", b"cpu"),
            ("device", {1: 2}),
            ("tol", np.zeros(3, dtype=complex)),
            ("tol", np.array([None])),
        ],
    )
    def test_parameters_that_are_no_plain_values(self, name, value, tmp_path):
        calibrator = fitted(NormalizingFlowCalibrator(max_epochs=0)).set_params(**{name: value})
        with pytest.raises(TypeError, match=f"The parameter {name} of this NormalizingFlowCalibrator cannot"):
            calibrator.save_pretrained(tmp_path / "x")
        assert not (tmp_path / "x").exists()

    def test_replaces_what_was_there(self, tmp_path):
        (tmp_path / "mine.txt").write_text("stays")
        for calibrator in (WhiteningCalibrator(), NATSVCalibrator(), NATSVCalibrator()):
            fitted(calibrator).save_pretrained(tmp_path)
            assert len(list(tmp_path.iterdir())) == 3
            type(calibrator).from_pretrained(tmp_path)

    @pytest.mark.parametrize("step", range(5))
    def test_killed_while_saving(self, step, tmp_path):
        """The process dies at its nth write, flush, replacement or removal: old or new, never neither."""
        old, new = fitted(WhiteningCalibrator()), WhiteningCalibrator().fit(2 * X + 1)
        old.save_pretrained(tmp_path)
        joblib.dump(new, tmp_path / "new.joblib")
        script = f"""
        import os, pathlib, joblib
        calibrator, left = joblib.load("new.joblib"), [{step}]

        def die_at_last(function):
            def wrapped(*args, **kwargs):
                if left[0] == 0:
                    os._exit(9)
                left[0] -= 1
                return function(*args, **kwargs)
            return wrapped

        os.fsync, os.replace = die_at_last(os.fsync), die_at_last(os.replace)
        calibrator.save_pretrained(".")
        os._exit(0)
        """
        result = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert result.returncode == (9 if step < 4 else 0)
        expected = old if step < 4 else new
        assert_same_state(WhiteningCalibrator.from_pretrained(tmp_path), expected)
        new.save_pretrained(tmp_path)
        assert_same_state(WhiteningCalibrator.from_pretrained(tmp_path), new)

    def test_what_a_crash_left_is_removed_by_the_next(self, tmp_path):
        left = ["parameters-0123456789abcdef.safetensors", ".calibrator.json.0a1b.tmp"]
        left.append(f".{left[0]}.0a1b.tmp")
        others = ["parameters.safetensors", ".mine.tmp", "parameters-0123.safetensors"]
        for name in left + others:
            (tmp_path / name).write_bytes(b"")
        fitted(WhiteningCalibrator()).save_pretrained(tmp_path)
        remaining = {path.name for path in tmp_path.iterdir()}
        assert remaining.isdisjoint(left)
        assert remaining.issuperset(others)
        assert len(remaining) == len(others) + 2

    def test_read_and_written_by_several_processes(self, tmp_path):
        """Whatever the moment, a reader finds one of the two estimators, and so does whoever comes last."""
        ones = [fitted(WhiteningCalibrator()), WhiteningCalibrator().fit(2 * X + 1)]
        directory = tmp_path / "shared"
        ones[0].save_pretrained(directory)
        joblib.dump(ones, tmp_path / "ones.joblib")
        script = f"""
        import joblib
        ones = joblib.load("ones.joblib")
        print("ready", flush=True)
        for i in range(150):
            ones[i % 2].save_pretrained({str(directory)!r})
        """
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(script)],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdout=subprocess.PIPE,
            )
            for _ in range(2)
        ]
        for writer in writers:
            writer.stdout.readline()
        means = [calibrator.mean_.tolist() for calibrator in ones]
        n_reads = 0
        while any(writer.poll() is None for writer in writers):
            assert WhiteningCalibrator.from_pretrained(directory).mean_.tolist() in means
            n_reads += 1
        for writer in writers:
            assert writer.wait() == 0
            writer.stdout.close()
        assert n_reads > 10
        assert WhiteningCalibrator.from_pretrained(directory).mean_.tolist() in means
        assert len(list(directory.iterdir())) == 2

    def test_settings_that_were_there_before_are_read_again(self, tmp_path, monkeypatch):
        """Another writer may put A, B and A while a reader of the first A looks for its tensors."""
        calibrator = fitted(WhiteningCalibrator())
        calibrator.save_pretrained(tmp_path)
        original, calls = _pretrained._read_tensors, []

        def read_tensors(directory, entry):
            calls.append(entry)
            if len(calls) < 4:
                raise FileNotFoundError(2, "No such file or directory", entry["file"])
            return original(directory, entry)

        monkeypatch.setattr(_pretrained, "_read_tensors", read_tensors)
        loaded = WhiteningCalibrator.from_pretrained(tmp_path)
        np.testing.assert_array_equal(loaded.mean_, calibrator.mean_)

    def test_failed_write_leaves_no_trace(self, tmp_path, monkeypatch):
        def full(*args):
            raise OSError(28, "No space left on device")

        path = tmp_path / "file"
        write_atomically(path, b"old")
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            write_atomically(path, b"new")
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(
    params=[WhiteningCalibrator(), NormalizingFlowCalibrator(hidden_width=2, n_levels=1, max_epochs=0)]
)
def saved(request, tmp_path):
    fitted(request.param).save_pretrained(tmp_path)
    return tmp_path


def tensors_path(directory):
    return next(directory.glob("*.safetensors"))


def rewrite(directory, change):
    """Change the JSON file; `change` gets its content."""
    path = directory / "calibrator.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))


def load(directory):
    """Load, or return the one error that a bad directory may give: a ValueError that names the directory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        try:
            return BaseCalibrator.from_pretrained(directory)
        except ValueError as error:
            if str(directory) not in str(error):
                raise
            return error


def warns_unless_current(version):
    if version == skflow.__version__:
        return contextlib.nullcontext()
    return pytest.warns(InconsistentSkflowVersionWarning, match=f"saved by skflow {re.escape(version)}")


@pytest.mark.parametrize(
    "release", sorted(path for path in RELEASES.iterdir() if path.is_dir()), ids=lambda p: p.name
)
class TestReleases:
    """Files that each release wrote still load, and give the numbers that they gave."""

    @pytest.mark.parametrize("format", ["pickle", "directory"])
    def test_load(self, release, format):
        with np.load(release / "expected.npz") as expected:
            rows = expected["X"]
            names = set(expected.files) - {"X"}
            assert {"standard", "natsv", "whitening", "flow"} <= names
            for name in sorted(names):
                with warns_unless_current(release.name):
                    if format == "pickle":
                        calibrator = pickle.loads((release / f"{name}.pickle").read_bytes())
                    else:
                        calibrator = BaseCalibrator.from_pretrained(release / name)
                # Another machine may add up in another order.
                np.testing.assert_allclose(calibrator.transform(rows), expected[name], rtol=1e-9, atol=1e-9)

    def test_small(self, release):
        assert sum(path.stat().st_size for path in release.rglob("*") if path.is_file()) < 100_000


class TestHostileFiles:
    def test_missing(self, tmp_path, saved):
        with pytest.raises(
            FileNotFoundError, match=r"no saved WhiteningCalibrator in .*nowhere.*calibrator\.json"
        ):
            WhiteningCalibrator.from_pretrained(tmp_path / "nowhere")
        tensors_path(saved).unlink()
        with pytest.raises(FileNotFoundError, match=r"parameters-\w+\.safetensors"):
            BaseCalibrator.from_pretrained(saved)

    def test_another_class(self, tmp_path):
        fitted(NATSVCalibrator()).save_pretrained(tmp_path)
        with pytest.raises(ValueError, match="holds no usable WhiteningCalibrator: it is a saved 'NATSVCal"):
            WhiteningCalibrator.from_pretrained(tmp_path)

    @pytest.mark.parametrize("name", ["os.system", "Pipeline", "object", "BaseEstimator", "", "../x"])
    def test_a_class_that_is_no_calibrator(self, saved, name):
        rewrite(saved, lambda config: config.update({"class": name}))
        assert "it is a saved" in str(load(saved))

    @settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_truncated_or_damaged(self, saved, data):
        """Any cut and any flipped bit in either file."""
        path = data.draw(st.sampled_from(sorted(saved.iterdir())))
        content = path.read_bytes()
        position = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            damaged = content[:position]
        else:
            flipped = content[position] ^ (1 << data.draw(st.integers(0, 7)))
            damaged = content[:position] + bytes([flipped]) + content[position + 1 :]
        path.write_bytes(damaged)
        try:
            result = load(saved)
        except FileNotFoundError:
            result = None  # the name of the other file was hit
        finally:
            path.write_bytes(content)
        if path.suffix == ".safetensors" or len(damaged) < len(content):
            assert result is None or isinstance(result, ValueError)

    @settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_any_json_in_place_of_a_value(self, saved, data):
        """Valid JSON of whatever content, under a checksum that is right."""
        values = st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["array", "dict", "tuple", "float", "strings", "scalar", "order", "x"]),
                    inner | st.sampled_from(["mean_", "components_", "offset_", "inf", "F"]),
                    max_size=2,
                )
            ),
            max_leaves=4,
        )
        path = saved / "calibrator.json"
        content = path.read_text()
        config = json.loads(content)
        place = config
        key = data.draw(st.sampled_from(sorted(place)))
        while isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
            place = place[key]
            key = data.draw(st.sampled_from(sorted(place)))
        if data.draw(st.booleans()):
            place[key] = data.draw(values)
        else:
            del place[key]
        path.write_text(json.dumps(config))
        try:
            load(saved)  # fails with the one error, or gives an estimator
        except FileNotFoundError:
            assert place is config["tensors"]
        finally:
            path.write_text(content)

    @settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_any_bytes_under_the_right_checksum(self, saved, data):
        """A hostile writer computes the checksum of a safetensors file that is none."""
        import hashlib

        path = tensors_path(saved)
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        position = data.draw(st.integers(0, min(size + 8, len(content)) - 1))
        damaged = content[:position] + data.draw(st.binary(max_size=6)) + content[position + 1 :]
        json_path = saved / "calibrator.json"
        text = json_path.read_text()
        path.write_bytes(damaged)
        rewrite(saved, lambda config: config["tensors"].update(sha256=hashlib.sha256(damaged).hexdigest()))
        try:
            load(saved)
        finally:
            path.write_bytes(content)
            json_path.write_text(text)

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"{",
            b"null",
            b"[]",
            b"\xff\xfe",
            b"[" * 100_000,
            b'{"format": "skflow-calibrator"}',
            b"1" * 10_000,
        ],
        ids=["empty", "open", "null", "list", "bytes", "deep", "bare", "digits"],
    )
    def test_no_json_of_ours(self, saved, content):
        (saved / "calibrator.json").write_bytes(content)
        assert isinstance(load(saved), ValueError)

    @pytest.mark.parametrize("place", ["params", "fitted"])
    def test_values_nested_without_end(self, saved, place):
        path = saved / "calibrator.json"
        config = json.loads(path.read_text())
        config[place]["n_components"] = "here"
        path.write_text(json.dumps(config).replace('"here"', "[" * 900 + "]" * 900))
        assert isinstance(load(saved), ValueError)

    @pytest.mark.parametrize(
        "name",
        ["../x.safetensors", "/etc/passwd", "calibrator.json", "parameters-0.safetensors", "", 3, None],
    )
    def test_no_other_file_is_opened(self, saved, name):
        rewrite(saved, lambda config: config["tensors"].update(file=name))
        assert "names the file of tensors" in str(load(saved))

    def test_newer_format(self, saved):
        rewrite(saved, lambda config: config.update(format_version=2, skflow_version="9.9"))
        assert "has format_version 2, of skflow '9.9'" in str(load(saved))

    @pytest.mark.parametrize(
        "name",
        ["transform", "__class__", "__dict__", "__reduce__", "fit", "covariance_", "flow_", "x", "a.b_"],
    )
    def test_no_attribute_is_hidden(self, saved, name):
        config = json.loads((saved / "calibrator.json").read_text())
        if name in ("covariance_", "flow_") and not hasattr(globals()[config["class"]], name):
            pytest.skip("not a property of this class")
        rewrite(saved, lambda config: config["fitted"].update({name: "evil"}))
        assert "is no fitted attribute" in str(load(saved))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda c: c["params"].update(method="evil"), "The 'method' parameter"),
            (lambda c: c["params"].update(strength="x"), "The 'strength' parameter"),
            (lambda c: c["params"].update(evil=1), "no parameter 'evil'"),
            (lambda c: c["fitted"].pop("mean_"), "mean_ is missing"),
            (lambda c: c["fitted"].update(_automatic_strength=1.5), "_automatic_strength is 1.5"),
            (lambda c: c["fitted"].update(shrinkage_="x"), "shrinkage_ is 'x'"),
            (lambda c: c["fitted"].update(mean_=None), "mean_ is missing, or not an array"),
            (
                lambda c: c["fitted"].update(mean_=c["fitted"]["components_"]),
                r"mean_ has shape \(8, 8\), expected",
            ),
            (lambda c: c["fitted"].update(n_features_in_=3), r"shape \(8,\), expected \(3,\)"),
            (
                lambda c: c["fitted"].update(n_features_in_=True),
                "n_features_in_ is True, expected a positive",
            ),
            (
                lambda c: c["fitted"].update(n_components_=2),
                r"components_ has shape \(8, 8\), expected \(2, 8\)",
            ),
            (lambda c: c["fitted"].update(n_samples_seen_="many"), "n_samples_seen_ is 'many'"),
            (
                lambda c: c["fitted"].update(mean_={"array": "nothing"}),
                "cannot be read, {'array': 'nothing'}",
            ),
            (lambda c: c["fitted"].update(feature_names_in_={"strings": ["a"]}), "does not hold 8 names"),
            (lambda c: c.update(fitted={}), "not fitted|n_features_in_"),
        ],
    )
    def test_values_that_do_not_fit(self, tmp_path, change, message):
        fitted(WhiteningCalibrator()).save_pretrained(tmp_path)
        rewrite(tmp_path, change)
        with pytest.raises(ValueError, match=message):
            WhiteningCalibrator.from_pretrained(tmp_path)

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("loss_curve_", "x", "loss_curve_ is 'x', expected a 1-D"),
            ("loss_curve_", 1.0, "loss_curve_ is 1.0, expected a 1-D"),
            ("validation_scores_", [1.0], "validation_scores_ is .*, expected a 1-D"),
            ("_moments", None, "'_moments' is no fitted attribute"),
            ("_moments", "x", "'_moments' is no fitted attribute"),
        ],
    )
    def test_training_state_that_does_not_fit(self, tmp_path, name, value, message):
        fitted(NormalizingFlowCalibrator(max_epochs=0, random_state=0)).save_pretrained(tmp_path)
        rewrite(tmp_path, lambda config: config["fitted"].update({name: value}))
        with pytest.raises(ValueError, match=message):
            NormalizingFlowCalibrator.from_pretrained(tmp_path)

    def test_not_finite(self, tmp_path):
        calibrator = fitted(WhiteningCalibrator())
        calibrator.mean_ = np.full(8, np.nan)
        calibrator.save_pretrained(tmp_path)
        with pytest.raises(ValueError, match="mean_ is not finite"):
            WhiteningCalibrator.from_pretrained(tmp_path)

    @pytest.mark.parametrize(
        ("calibrator", "name", "value", "message"),
        [
            (StandardNormalizationCalibrator(), "scale_", 0.0, "scale_ is not positive"),
            (StandardNormalizationCalibrator(), "scale_", -1.0, "scale_ is not positive"),
            (WhiteningCalibrator(), "_deviations", -1.0, "_deviations is negative"),
            (
                NormalizingFlowCalibrator(max_epochs=0, random_state=0),
                "scale_",
                0.0,
                "scale_ is not positive",
            ),
        ],
    )
    def test_what_must_be_positive(self, calibrator, name, value, message, tmp_path):
        calibrator = fitted(calibrator)
        getattr(calibrator, name)[0] = value
        calibrator.save_pretrained(tmp_path)
        with pytest.raises(ValueError, match=message):
            BaseCalibrator.from_pretrained(tmp_path)
