"""A fit that dies at any moment goes on when it is started again, and ends in the same model, bit for bit."""

import errno
import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import kstonet
from kstonet import KStoNetRegressor, StoNetRegressor
from kstonet.checkpoint import open_run
from kstonet.gram import DenseGram, dense, make_kernel
from kstonet.persistence import ModelFileError
from kstonet.storage import container
from tests.reliability.dying import MODELS, PLAIN, X, Y, facts, fitted, survive, with_checkpoint

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are forked")


class Died(BaseException):
    """The end of a process, as far as a fit can tell."""


def dies_after(monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    """The fit dies when it has written so many files."""
    write, left = container.write, [writes]

    def dying(path: Path, *content: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Died
        write(path, *content)

    monkeypatch.setattr(container, "write", dying)


@pytest.mark.usefixtures("few_folds", "few_steps")  # fits die in the folds too, however many there are
@pytest.mark.parametrize("name", [name for name in MODELS if "search" not in name])
def test_a_fit_that_dies_after_every_second_file_ends_in_the_same_model(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, expected = MODELS[name], facts(fitted(clone(MODELS[name])))
    deaths = 0
    while True:
        with monkeypatch.context() as patched:
            dies_after(patched, 2)
            try:
                again = fitted(with_checkpoint(model, tmp_path))
            except Died:
                deaths += 1
            else:
                break
    assert deaths >= 3
    assert facts(again) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "run.state", "trained.state"]
    dies_after(monkeypatch, 0)
    assert facts(fitted(with_checkpoint(model, tmp_path))) == expected  # what has ended is not done again


@needs_fork
@pytest.mark.usefixtures("few_folds", "few_steps")  # processes that are forked have as few
@pytest.mark.parametrize(
    ("name", "kills"), [("support vector regressions", 3), ("classifier", 2), ("search", 2), ("own search", 2)]
)
def test_processes_killed_at_random_moments(name: str, kills: int, tmp_path: Path) -> None:
    found, killed, kept = survive(MODELS[name], tmp_path, kills, seed=len(name))
    assert killed >= 1
    assert found == facts(fitted(clone(MODELS[name])))
    assert len(kept) == len(set(kept)), "a step that was kept is done again"
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".tmp")]


def test_random_numbers_without_a_seed_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = KStoNetRegressor(**(PLAIN | {"random_state": None}), max_iter=3, residuals=None, checkpoint=tmp_path)
    with monkeypatch.context() as patched:
        dies_after(patched, 3)
        with pytest.raises(Died):
            model.fit(X, Y)
    assert facts(clone(model).fit(X, Y)) == facts(clone(model).fit(X, Y))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"max_iter": 4}, "parameters max_iter"),
        ({"C": 3.0, "epsilon": 0.1}, "parameters C, epsilon"),
        ({"X": X + 1.0}, "data training rows"),
        ({"y": Y[::-1]}, "data training rows"),
        ({"sample_weight": np.full(len(X), 2.0)}, "data training rows"),
        ({"version": "0.0"}, "estimator KStoNetRegressor"),
        ({"estimator": StoNetRegressor(random_state=0)}, "estimator StoNetRegressor"),
    ],
)
def test_a_folder_of_another_run_is_refused(
    changed: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = KStoNetRegressor(**PLAIN, max_iter=2, residuals=None, checkpoint=tmp_path).fit(X, Y)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    data = {"X": X, "y": Y} | {name: changed.pop(name) for name in ("X", "y", "sample_weight") if name in changed}
    if "version" in changed:
        monkeypatch.setattr(kstonet, "__version__", changed.pop("version"))
    other = changed.pop("estimator", model).set_params(checkpoint=tmp_path, **changed)
    with pytest.raises(ValueError, match=f"belongs to another run, which differs in .*{words}"):
        other.fit(**data)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_does_not_change_the_result_may_change(tmp_path: Path) -> None:
    model = KStoNetRegressor(**PLAIN, max_iter=2, residuals=None, checkpoint=tmp_path).fit(X, Y)
    again = clone(model).set_params(n_jobs=2, callback=print)
    assert facts(again.fit(X, Y)) == facts(model)


def test_a_full_disk_leaves_the_last_iteration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, sync, left = KStoNetRegressor(**PLAIN, max_iter=4, checkpoint=tmp_path), os.fsync, [8]

    def full(number: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(number)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=re.escape(str(tmp_path))):
            model.fit(X, Y)
    assert not list(tmp_path.glob(".*"))
    seen: list[int] = []
    again = clone(model).set_params(callback=lambda state: seen.append(state.iteration)).fit(X, Y)
    assert seen[0] > 1
    assert facts(again) == facts(fitted(clone(model).set_params(checkpoint=None)))


def test_a_damaged_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = KStoNetRegressor(**PLAIN, max_iter=4, checkpoint=tmp_path)
    with monkeypatch.context() as patched:
        dies_after(patched, 4)
        with pytest.raises(Died):
            model.fit(X, Y)
    path = max(tmp_path.glob("chain*"))
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=f"{path.name}.*checksum"):
        model.fit(X, Y)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    model = KStoNetRegressor(**PLAIN, max_iter=2, residuals=None, checkpoint=tmp_path)
    with (
        open_run(tmp_path, model._plan(model._rows(X, Y, None), None)),
        pytest.raises(ValueError, match="in use by another run"),
    ):
        model.fit(X, Y)
    model.fit(X, Y)


def test_what_a_killed_process_was_writing_is_removed(tmp_path: Path) -> None:
    left, own = tmp_path / ".chain000-000002.state.0123456789ab.tmp", tmp_path / ".notes.tmp"
    left.write_text("half"), own.write_text("a user's")
    KStoNetRegressor(**PLAIN, max_iter=2, residuals=None, checkpoint=tmp_path).fit(X, Y)
    assert (left.exists(), own.exists()) == (False, True)


def test_a_kernel_that_is_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cosine(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.asarray(A @ B.T + 1.0)

    model = KStoNetRegressor(**PLAIN, max_iter=4, kernel=cosine, C=1.0)
    with monkeypatch.context() as patched:
        dies_after(patched, 4)
        with pytest.raises(Died):
            fitted(with_checkpoint(model, tmp_path))
    assert facts(fitted(with_checkpoint(model, tmp_path))) == facts(fitted(clone(model)))
    with pytest.raises(ValueError, match="parameters kernel"):
        fitted(with_checkpoint(clone(model).set_params(kernel="rbf"), tmp_path))


@pytest.mark.parametrize("wrong", [{"checkpoint": 3}, {"checkpoint": "folder", "warm_start": True}])
def test_checkpoint_is_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"checkpoint=.* must be a folder, or None; warm_start=True excludes it"):
        KStoNetRegressor(**PLAIN, **wrong).fit(X, Y)


def test_a_saved_model_does_not_name_the_folder(tmp_path: Path) -> None:
    model = KStoNetRegressor(**PLAIN, max_iter=2, residuals=None, checkpoint=tmp_path / "folder").fit(X, Y)
    kstonet.save(model, tmp_path / "m.kstonet")
    assert kstonet.load(tmp_path / "m.kstonet").checkpoint is None
    assert b"folder" not in (tmp_path / "m.kstonet").read_bytes()


@pytest.mark.parametrize("how", ["pickle", "load", "clone of a model without"])
def test_a_model_that_cannot_go_on_says_so(how: str, tmp_path: Path) -> None:
    model = KStoNetRegressor(**PLAIN, max_iter=2, residuals=None, warm_start=how != "clone of a model without").fit(X, Y)
    if how == "pickle":
        model = pickle.loads(pickle.dumps(model))
    elif how == "load":
        kstonet.save(model, tmp_path / "m.kstonet")
        model = kstonet.load(tmp_path / "m.kstonet")
    with pytest.warns(UserWarning, match="warm_start=True cannot go on"):
        model.set_params(warm_start=True).fit(X, Y)
    assert model.n_iter_ == 2
    assert model.fit(X, Y).n_iter_ == 4


def test_a_model_saved_by_a_callback_says_why_it_has_no_intervals(tmp_path: Path) -> None:
    model = KStoNetRegressor(**PLAIN, max_iter=2)
    model.set_params(callback=lambda state: kstonet.save(model, tmp_path / "m.kstonet"))
    with pytest.warns(UserWarning, match="callback"):
        model.fit(X, Y)
    loaded = kstonet.load(tmp_path / "m.kstonet")
    assert loaded.predict(X).shape == Y.shape
    with pytest.raises(ValueError, match="what a callback saw"):
        loaded.predict_interval(X)


def test_a_gram_that_retraces_holds_the_same_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "MIXED_PRECISION_FROM", 100)
    rows = np.random.default_rng(0).normal(size=(800, 2))
    gram, other = (DenseGram(rows, make_kernel("rbf", rows, gamma=0.1)) for _ in range(2))
    right = rows.T.copy()
    for shift in (0.5, 2.0):  # the factor of small rank, made for the first, serves the second
        gram.shifted(shift)
    fresh = other.shifted(2.0).solve(right)
    other.retrace(gram.trail)
    assert gram.trail == other.trail == (0.5, 2.0)
    assert np.array_equal(gram.shifted(2.0).solve(right), other.shifted(2.0).solve(right))
    assert not np.array_equal(fresh, gram.shifted(2.0).solve(right))


def test_files_hold_what_iterations_have_changed_and_not_the_kernel_matrix(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(400, 2))
    sizes: list[int] = []
    model = KStoNetRegressor(**PLAIN, max_iter=3, residuals=None, checkpoint=tmp_path)
    model.set_params(callback=lambda state: sizes.extend(path.stat().st_size for path in tmp_path.glob("chain*")))
    model.fit(rows, rows[:, 0])
    assert 0 < max(sizes) < 8 * len(rows) ** 2 / 4
