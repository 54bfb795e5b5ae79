"""scikit-learn's callbacks, ``model.set_callbacks(ProgressBar())``: the iterations of Algorithm 1 are the tasks they see.

They exist from scikit-learn 1.9 on; with an earlier version the estimators are the same, without ``set_callbacks``. The tree
of tasks is rooted by ``_init_callback_context``, which scikit-learn documents for other libraries in spite of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No callbacks to support."""

    def with_callbacks(method: Any) -> Any:
        """No callbacks to tear down."""
        return method


__all__ = ["CallbackSupportMixin", "FitTasks", "fit_tasks", "tears_down_callbacks", "without_callbacks"]

ATTRIBUTE = "_skl_callbacks"  # where scikit-learn keeps them

Method = TypeVar("Method", bound=Callable[..., Any])
State = TypeVar("State")


def tears_down_callbacks(fit: Method) -> Method:
    """Decorate a ``fit`` that uses :func:`fit_tasks`."""
    return cast(Method, with_callbacks(fit))


def without_callbacks(estimator: Any) -> Any:
    """The estimator itself, for trainings that are not the user's own."""
    estimator.__dict__.pop(ATTRIBUTE, None)
    return estimator


class FitTasks:
    """The tasks of one training; without callbacks nobody hears of them.

    Parameters
    ----------
    root : CallbackContext or None
        The whole training.
    about : dict
        What a callback may ask for: the estimator, X, y and the sample weights.
    """

    def __init__(self, root: Any, about: dict[str, Any]) -> None:
        self._root, self._about = root, about
        self._task: Any = None

    def each(self, states: Iterable[State]) -> Iterator[State]:
        """The states as they come; the task of each begins before it is computed."""
        self.begin("iteration")
        for state in states:
            yield state
            self.begin("iteration")

    def begin(self, name: str) -> None:
        """Begin a task."""
        if self._root is not None:
            self._task = self._root.subcontext(task_name=name).call_on_fit_task_begin(**self._about)

    def end(self, publish: Callable[[], None] | None = None) -> bool:
        """End the task and say whether a callback asks to stop; ``publish`` makes the estimator a model, if one wants it."""
        if self._task is None:
            return False

        def model() -> dict[str, Any] | None:
            if publish is None:
                return None
            publish()
            return {}  # what the estimator now holds is all a copy needs

        return bool(self._task.call_on_fit_task_end(**self._about, reconstruction_attributes=model))


@contextmanager
def fit_tasks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[FitTasks]:
    """Tell the callbacks of an estimator that a training begins and, unless it fails, that it ends.

    Parameters
    ----------
    estimator : estimator
    X, y, sample_weight : array-like
        As the user gave them: a callback may score the model on them.

    Yields
    ------
    FitTasks
    """
    weights = None if sample_weight is None else {"sample_weight": sample_weight}
    about = {"estimator": estimator, "X": X, "y": y, "metadata": weights}
    if not hasattr(estimator, ATTRIBUTE):
        yield FitTasks(None, about)
        return
    intervals = estimator.residuals is not None  # are one more task
    root = estimator._init_callback_context(max_subtasks=estimator.max_iter * estimator.n_chains + intervals)
    yield FitTasks(root.call_on_fit_task_begin(**about), about)
    root.call_on_fit_task_end(**about, reconstruction_attributes={})
