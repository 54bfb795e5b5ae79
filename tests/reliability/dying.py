"""Fits that die at random moments in processes of their own, and are started again until they end.

``python -m tests.reliability.dying 100`` kills 100 processes, or a few more.
"""

import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from kstonet import KStoNetClassifier, KStoNetRegressor, KStoNetRegressorCV, StoNetClassifier, StoNetRegressor
from kstonet.gram import LowRank
from kstonet.storage import container

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)

_rng = np.random.default_rng(0)
X = _rng.normal(size=(60, 2))
Y = np.sin(2.0 * X[:, 0]) + 0.1 * _rng.normal(size=60)
LABELS = np.digitize(Y, [-0.3, 0.3])

PLAIN: dict[str, Any] = {"tuning": "none", "hidden_layer_sizes": 3, "random_state": 0}
SEARCH: dict[str, Any] = {"kernel": ["rbf"], "length_scale": [None], "C": [1, 10], "hidden_layer_sizes": [(3,)], "cv": 2}
MODELS: dict[str, Any] = {
    "support vector regressions": KStoNetRegressor(**PLAIN, max_iter=4, n_average=2, n_chains=2),
    "early stopping": KStoNetRegressor(**PLAIN, max_iter=12, tol=0.05, n_iter_no_change=3, residuals="crossfit"),
    "first call": KStoNetRegressor(max_iter=5, random_state=0),
    "search": KStoNetRegressor(C="tune", noise_variance="tune", hidden_layer_sizes=3, max_iter=6, random_state=0),
    "own search": KStoNetRegressorCV(KStoNetRegressor(max_iter=4, residuals=None), **SEARCH, random_state=0),
    "classifier": KStoNetClassifier(max_iter=4, random_state=0),
    "classifier, support vectors": KStoNetClassifier(**PLAIN, max_iter=3),
    "low rank": KStoNetRegressor(**PLAIN, loss="squared", solver=LowRank(rank=10, leaf_rows=20), max_iter=4),
    "low rank, support vectors": KStoNetRegressor(**PLAIN, solver=LowRank(rank=10, leaf_rows=20), max_iter=4, residuals=None),
    "linear": StoNetRegressor(max_iter=4, random_state=0),
    "linear in the kernel matrix": StoNetClassifier(kernel="rbf", max_iter=3, random_state=0),
}


def with_checkpoint(model: Any, folder: Path) -> Any:
    model = clone(model)
    return model.set_params(**{"estimator__checkpoint" if "estimator" in model.get_params() else "checkpoint": str(folder)})


def fitted(model: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, LABELS if hasattr(model, "predict_proba") else Y)


def facts(model: Any) -> Any:
    """All that a fit results in, to the bit; not the seconds it took."""
    best = getattr(model, "best_estimator_", model)
    with_intervals = best.residuals is not None
    if hasattr(best, "predict_proba"):
        answers = [best.predict_proba(X), *([best.predict_proba_interval(X)] if with_intervals else [])]
    else:
        answers = [best.predict(X), *([best.predict_interval(X)] if with_intervals else [])]
    history = [[(name, repr(value)) for name, value in record.items() if "seconds" not in name] for record in best.history_]
    return [answer.tobytes() for answer in answers], history, repr(getattr(best, "tuned_", None))


def _child(model: Any, folder: Path, announce: Any) -> None:
    write = container.write

    def told(path: Path, *content: Any) -> None:
        announce.send(("begins", str(path)))
        write(path, *content)
        announce.send(("kept", str(path)))

    container.write = told
    announce.send(("facts", facts(fitted(with_checkpoint(model, folder)))))


def survive(model: Any, folder: Path, kills: int, seed: int) -> tuple[Any, int, list[str]]:
    """Fit in processes that are killed at random moments, at most ``kills`` times.

    Returns the facts of the model, how many processes were killed, and the steps that were kept, in their order.
    """
    moment = random.Random(seed)
    fork = multiprocessing.get_context("fork")
    killed, kept = 0, []
    while True:
        hears, says = fork.Pipe(duplex=False)
        process = fork.Process(target=_child, args=(model, folder, says))
        process.start()
        says.close()
        left = moment.randint(1, 12) if killed < kills else None  # steps until it dies
        found = None
        while found is None:
            try:
                what, content = hears.recv()
            except EOFError:
                break
            if what == "facts":
                found = content
            elif what == "kept":
                kept.append(content)
            if left is not None and found is None:
                left -= 1
                if left <= 0:
                    time.sleep(moment.choice((0.0, moment.uniform(0.0, 0.002), moment.uniform(0.0, 0.05))))
                    os.kill(process.pid, moment.choice(SIGNALS))
                    left = None
                    killed += 1
        process.join()
        if found is not None:
            return found, killed, kept
        assert process.exitcode in {-each for each in SIGNALS}, f"the fit failed by itself: exit code {process.exitcode}"


KILLS = 12  # at most, of one fit


def kill(fewest: int, folder: Path) -> tuple[int, int]:
    """Kill at least so many processes, in rounds of all models; how many kills of how many fits it were."""
    expected = {name: facts(fitted(clone(model))) for name, model in MODELS.items()}
    kills = fits = 0
    while kills < fewest:
        for name, model in MODELS.items():
            own = folder / f"{fits}"
            found, killed, kept = survive(model, own, KILLS, seed=fits)
            assert found == expected[name], f"{name}: another model after {killed} kills"
            assert len(kept) == len(set(kept)), f"{name}: a step that was kept is done again"
            assert not [path for path in own.rglob("*") if path.name.endswith(".tmp")]
            kills, fits = kills + killed, fits + 1
    return kills, fits


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print("{} kills of {} fits: 0 lost, 0 damaged, 0 different".format(*kill(int(sys.argv[1]), Path(place))))
