"""Files of every version load, in processes without the training data, and run no code."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from model_files import NEW

import kstonet
from kstonet._records import RECORDS
from kstonet.persistence import layouts, load, save
from kstonet.storage import container


def test_the_encoding_of_an_older_command_line_is_part_of_the_model(tmp_path):
    """v2_table.kstonet has it in its metadata alone; v2_table.csv has its table, and what ``kstonet predict`` said then."""
    pandas = pytest.importorskip("pandas")
    said = pandas.read_csv(DATA / "command_line" / "v2_table.csv")
    table = said[["area", "city", "balcony"]]
    assert table.isna().any().all()
    model = load(DATA / "command_line" / "v2_table.kstonet")
    mean, std = model.predict(table, return_std=True)
    np.testing.assert_allclose(np.column_stack([mean, std]), said[["mean", "std"]], rtol=1e-9)
    assert (model.n_features_in_, list(model.feature_names_in_)) == (3, list(table.columns))
    save(model, tmp_path / "again.kstonet")  # without the metadata
    np.testing.assert_array_equal(load(tmp_path / "again.kstonet").predict(table), mean)


def test_the_source_knows_no_way_to_run_code():
    for source in Path(layouts.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                named = {alias.name for alias in node.names} | {getattr(node, "module", "")}
                assert not named & {"pickle", "joblib", "marshal", "shelve", "importlib", "subprocess"}
            if isinstance(node, ast.Name):
                assert node.id not in {"eval", "exec", "compile", "__import__", "globals"}
    assert "UserKernel" not in RECORDS


FRESH = """
import sys
import numpy as np
path, rows, out = sys.argv[1:]
X = np.load(rows)
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "pyarrow", "torch", "matplotlib", "polars"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())  # the core and safetensors are enough
import kstonet
kstonet.load(path)  # what is imported late, and annotations read late, are there now
events = []
sys.addaudithook(lambda event, args: events.append(event))
model = kstonet.load(path)
used = set(events) & {"exec", "compile", "import", "pickle.find_class", "os.system", "subprocess.Popen", "ctypes.dlopen"}
assert not used, used
np.savez(out, mean=model.predict(X), interval=model.predict_interval(X))
"""


def test_a_fresh_process_without_the_training_data(stored, fitted, tmp_path):
    """Also: loading imports nothing, compiles nothing and unpickles nothing."""
    model, _ = fitted("gamma per unit")
    np.save(tmp_path / "rows.npy", NEW)
    subprocess.run([sys.executable, "-c", FRESH, stored, tmp_path / "rows.npy", tmp_path / "out.npz"], check=True)
    got = np.load(tmp_path / "out.npz")
    np.testing.assert_array_equal(got["mean"], model.predict(NEW))
    np.testing.assert_array_equal(got["interval"], model.predict_interval(NEW))


# -- older versions -----------------------------------------------------------------------------------------------------------

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("path", sorted(DATA.glob("*.kstonet")), ids=lambda path: path.stem)
def test_files_of_every_version_stay_loadable(path):
    """Made by tests/data/make_stored_models.py; never made again once a version is released."""
    model = load(path)
    reference = json.loads(path.with_suffix(".json").read_text())
    rows = np.array(reference.pop("X"))
    for method, expected in reference.items():
        got = getattr(model, method)(rows)
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)
        else:  # labels
            assert got.tolist() == expected
    assert path.stat().st_size < 100_000


def test_files_without_a_variance_scale_have_the_one_of_their_time():
    old = load(DATA / "v1_KStoNetClassifier.kstonet")
    assert container.read(DATA / "v1_KStoNetClassifier.kstonet")[0]["attributes"].keys().isdisjoint({"logit_variance_scale_"})
    assert old.logit_variance_scale_ == 1.0


def test_there_are_stored_files():
    assert {path.name for path in DATA.glob("v1_*.kstonet")} == {f"v1_{name}.kstonet" for name in layouts.LAYOUTS}
    assert kstonet.load is load


@pytest.mark.parametrize("name", ["regressor_units", "classifier_loo", "stonet_loo"])
def test_a_kind_of_residuals_that_is_gone_stays_in_what_was_learnt(name):
    """The model answers as before (``tests/reference``); another fit uses cross-fitted residuals."""
    model = load(Path(__file__).parents[1] / "reference" / "stored" / f"{name}.kstonet")
    assert (model.residuals, model.trained_.residuals) == ("crossfit", "loo")
    model._check_parameters()
    with pytest.raises(ValueError, match="residuals='loo' must be"):
        model.set_params(residuals="loo")._check_parameters()
