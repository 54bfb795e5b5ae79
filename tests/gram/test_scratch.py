"""What memory does not hold is in files: the same model, less memory, nothing left behind."""

import os
import pickle
import subprocess
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from kstonet import KStoNetClassifier, KStoNetRegressor, load, save
from kstonet.gram import GramTooLargeError, LowRank, make_gram, make_kernel
from kstonet.gram.scratch import Scratch

RNG = np.random.default_rng(0)
N = 2000
X = RNG.normal(size=(N, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=N)
SIZES = {"rank": 200, "leaf_rows": 250}
NETWORK = {"tuning": "none", "hidden_layer_sizes": (3,), "max_iter": 3, "n_average": 2, "random_state": 0}
TOO_SMALL = 8e6  # bytes: less than factor, leaves and inverses take, and more than the work arrays


def fitted(scratch, kind=KStoNetRegressor, target=Y, **options):
    limit = {} if scratch is None else {"max_memory": TOO_SMALL}
    return kind(solver=LowRank(**SIZES, scratch=scratch), **NETWORK | {"loss": "squared"} | limit | options).fit(X, target)


@pytest.mark.parametrize("options", [{}, {"loss": "epsilon_insensitive", "residuals": None}], ids=["squared", "SVR"])
def test_the_same_model_from_files(tmp_path, options):
    plain, filed = fitted(None, **options), fitted(tmp_path, **options)
    assert plain.plan_.filed_bytes == 0
    assert filed.plan_.filed_bytes == 4 * N * (200 + 2 * 250)
    assert "5.6 MB in files" in str(filed.plan_)
    assert np.array_equal(plain.predict(X[:50]), filed.predict(X[:50]))
    if options.get("residuals", "crossfit"):
        assert np.array_equal(plain.predict_interval(X[:50]), filed.predict_interval(X[:50]))
    assert os.listdir(tmp_path) == []


def test_a_classifier_from_files(tmp_path):
    labels = np.digitize(Y, [-0.5, 0.5])
    plain, filed = (fitted(scratch, KStoNetClassifier, labels) for scratch in (None, str(tmp_path)))
    assert filed.plan_.filed_bytes
    assert np.array_equal(plain.predict_proba_interval(X[:50]), filed.predict_proba_interval(X[:50]))


def test_memory_is_not_taken(tmp_path):
    held = []
    for scratch, limit in ((None, None), (tmp_path, TOO_SMALL)):
        tracemalloc.start()
        gram = make_gram(X, make_kernel("rbf", X), solver=LowRank(**SIZES, tolerance=0.0, scratch=scratch), max_memory=limit)
        gram.shifted(1.0)
        held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    assert held[0] > 4 * N * (200 + 2 * 250)
    assert held[1] < 0.25 * held[0]


def test_memory_that_is_enough_is_used(tmp_path):
    sizes = LowRank(**SIZES, scratch=tmp_path).sizes(N, 1e9)
    assert not sizes.filed
    assert LowRank(scratch=tmp_path).sizes(200_000, 1.0, "cuda").filed is False


def test_files_leave_landmarks_and_leaves_as_they_would_be(tmp_path):
    filed, plenty = LowRank(scratch=tmp_path).sizes(5_000_000, 2e9), LowRank().sizes(5_000_000, 1e12)
    assert filed.filed
    assert (filed.rank, filed.leaf_rows) == (plenty.rank, plenty.leaf_rows)
    assert filed.bytes < 2e9 < filed.filed_bytes


def test_many_arrays_share_few_files(tmp_path):
    scratch = Scratch(str(tmp_path))
    given = [RNG.normal(size=(100, 100 + k)).astype(dtype) for k in range(20) for dtype in (np.float32, np.float64)]
    kept = [scratch.keep(values) for values in given]
    assert all(np.array_equal(one, other) and one.dtype == other.dtype for one, other in zip(given, kept, strict=True))
    assert len({id(values.base) for values in kept if values.nbytes >= 2**16}) <= 2
    assert np.array_equal(pickle.loads(pickle.dumps(kept[-1])), given[-1])


@pytest.mark.parametrize("name", ["nowhere", "a_file"])
def test_a_folder_that_is_none_is_said_before_the_choice(tmp_path, name):
    (tmp_path / "a_file").write_text("")
    model = KStoNetRegressor(solver=LowRank(**SIZES, scratch=tmp_path / name), max_memory=TOO_SMALL)
    with pytest.raises(GramTooLargeError, match=f"{name}' is not a folder that can be written to"):
        model.fit(X, Y)


def test_a_disk_that_is_too_small_is_said_before(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1000))
    with pytest.raises(GramTooLargeError, match=r"needs 5.6 MB in files; scratch='.*' has 1.0 kB left"):
        fitted(tmp_path)


def test_what_is_no_path_is_refused():
    with pytest.raises(ValueError, match="scratch=3 must be the path of a folder"):
        LowRank(scratch=3)


def test_without_a_folder_the_remedy_is_said():
    model = KStoNetRegressor(solver=LowRank(**SIZES), max_memory=TOO_SMALL, **NETWORK)
    with pytest.raises(GramTooLargeError, match=r"LowRank\(scratch=...\)"):
        model.fit(X, Y)


def test_a_saved_model_needs_no_folder(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    model = fitted(folder, residuals=None)
    save(model, tmp_path / "model.kstonet")
    folder.rmdir()
    loaded = load(tmp_path / "model.kstonet")
    assert loaded.solver.scratch == str(folder)
    assert np.array_equal(loaded.predict(X[:20]), model.predict(X[:20]))


HELD = """
import os, signal, sys
import numpy as np
from kstonet.gram.scratch import Scratch
values = Scratch(sys.argv[1]).keep(np.ones(10**6))
print(values.sum(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_leaves_no_files(tmp_path):
    ended = subprocess.run([sys.executable, "-c", HELD, str(tmp_path)], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (-9, "1000000.0\n")
    assert os.listdir(tmp_path) == []


def test_a_file_that_finds_no_room_is_an_error_and_not_a_crash(tmp_path):
    """With a limit of the system for the size of files, as on a disk that has filled up since it was asked."""
    resource = pytest.importorskip("resource")

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))

    call = HELD.replace("import os", "from kstonet.gram import GramTooLargeError\nimport os", 1)
    call = call.replace("values =", "try:\n    values =").replace(
        "print", "except GramTooLargeError as error:\n    sys.exit(str(error))\nprint"
    )
    ended = subprocess.run([sys.executable, "-c", call, str(tmp_path)], capture_output=True, text=True, preexec_fn=limited)
    assert ended.returncode == 1
    assert "has no room for a file of 268.4 MB (File too large). Name a folder on a larger disk" in ended.stderr
