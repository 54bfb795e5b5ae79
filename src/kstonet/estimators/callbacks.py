"""scikit-learn's callbacks, ``model.set_callbacks(ProgressBar())``: the iterations of Algorithm 1 are the tasks they see.

They exist from scikit-learn 1.9 on; with an earlier version the estimators are the same, without ``set_callbacks``. The tree
of tasks is rooted by ``_init_callback_context``, which scikit-learn documents for other libraries in spite of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from kstonet.observers import Iteration, Observer, Stop

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No callbacks to support."""

    def with_callbacks(method: Any) -> Any:
        """No callbacks to tear down."""
        return method


__all__ = ["CallbackSupportMixin", "UserCallback", "fit_tasks", "tears_down_callbacks", "without_callbacks"]

ATTRIBUTE = "_skl_callbacks"  # where scikit-learn keeps them

Method = TypeVar("Method", bound=Callable[..., Any])


def tears_down_callbacks(fit: Method) -> Method:
    """Decorate a ``fit`` that uses :func:`fit_tasks`."""
    return cast(Method, with_callbacks(fit))


def without_callbacks(estimator: Any) -> Any:
    """The estimator itself, for trainings that are not the user's own."""
    estimator.__dict__.pop(ATTRIBUTE, None)
    return estimator


class UserCallback(Observer):
    """Calls a function with the state of every iteration; the estimator can predict meanwhile."""

    def __init__(self, estimator: Any, callback: Callable[[Any], Any]) -> None:
        self._estimator, self._callback = estimator, callback

    def iteration(self, done: Iteration) -> Stop | None:
        """Make the estimator a model, then call."""
        self._estimator.trained_ = done.model()
        self._callback(done.state)
        return None


class FitTasks(Observer):
    """The tasks of one training, for scikit-learn's callbacks.

    Parameters
    ----------
    root : CallbackContext
        The whole training.
    about : dict
        What a callback may ask for: the estimator, X, y and the sample weights.
    """

    def __init__(self, root: Any, about: dict[str, Any]) -> None:
        self._root, self._about = root, about
        self._task: Any = None

    def begins(self, task: str) -> None:
        """Begin a task; a chain is none of its own."""
        if task != "chain":
            self._task = self._root.subcontext(task_name=task).call_on_fit_task_begin(**self._about)

    def iteration(self, done: Iteration) -> Stop | None:
        """End the task of an iteration; a callback may ask for the model, and to stop."""

        def model() -> dict[str, Any]:
            self._about["estimator"].trained_ = done.model()
            return {}  # what the estimator now holds is all a copy needs

        stopped = self._task.call_on_fit_task_end(**self._about, reconstruction_attributes=model)
        return Stop.TRAINING if stopped else None

    def ended(self, task: str) -> None:
        """End the task of the intervals."""
        self._task.call_on_fit_task_end(**self._about, reconstruction_attributes=lambda: None)


@contextmanager
def fit_tasks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[list[Observer]]:
    """Tell the callbacks of an estimator that a training begins and, unless it fails, that it ends.

    Parameters
    ----------
    estimator : estimator
    X, y, sample_weight : array-like
        As the user gave them: a callback may score the model on them.

    Yields
    ------
    list of Observer
        Empty where there are no callbacks.
    """
    if not hasattr(estimator, ATTRIBUTE):
        yield []
        return
    weights = None if sample_weight is None else {"sample_weight": sample_weight}
    about = {"estimator": estimator, "X": X, "y": y, "metadata": weights}
    intervals = estimator.residuals is not None  # are one more task
    chosen = "max_iter" in estimator._asked()  # not known yet
    most = None if chosen else estimator._given("max_iter") * estimator.n_chains + intervals
    root = estimator._init_callback_context(max_subtasks=most)
    yield [FitTasks(root.call_on_fit_task_begin(**about), about)]
    root.call_on_fit_task_end(**about, reconstruction_attributes={})
