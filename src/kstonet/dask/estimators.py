"""The estimators on Dask arrays and data frames: scikit-learn's names, collections in and out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from kstonet import row_sums
from kstonet.checkpoint import Run
from kstonet.dask.dask_rows import ClusterRows, current_client, is_collection, joined, lazily, partitions
from kstonet.dask.training import SAMPLE, ClusterTraining
from kstonet.estimators import KStoNetClassifier, KStoNetRegressor
from kstonet.estimators.kstonet import BaseKStoNet
from kstonet.gram import LowRank, Plan
from kstonet.problem import Grams, Problem, Rows
from kstonet.row_sums import Group, Part, within
from kstonet.scaling import Scaler
from kstonet.sum_layers import unit_groups
from kstonet.target_map import MAPS
from kstonet.targets import NumericTargets

TIMEOUT = 120.0  # seconds without a usable cluster
ONLY = {
    "n_chains": 1, "warm_start": False, "checkpoint": None, "callback": None, "device": None, "sampler": "sghmc", "tol": None,
}  # fmt: skip


class _DaskEstimator(BaseKStoNet):
    """What both estimators share: how they are fitted and how they predict on a cluster."""

    timeout: float = TIMEOUT
    _client: Any = None

    @property
    def client(self) -> Any:
        """The Dask client; None is the one that is active. It is not a parameter, and copies of the estimator lack it."""
        return self._client

    @client.setter
    def client(self, client: Any) -> None:
        self._client = client

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_client", None)
        return state

    # -- fitting -------------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None) -> Self:
        """Train on the cluster.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            Training rows. They stay where they are; partitions may be empty.
        y : dask Array or Series
            Their targets or labels, in the same partitions.
        sample_weight : dask Array or Series, optional
            Weights of the rows.
        X_val, y_val : None
            Validation rows are not watched on a cluster.

        Returns
        -------
        self
        """
        if X_val is not None or y_val is not None:
            raise ValueError("X_val and y_val are not known on a Dask cluster; judge predict(X_val) afterwards.")
        self._refuse()
        self._check_parameters()
        rows = ClusterRows(current_client(self._client), self.timeout)
        raw = rows.loaded(partitions(X, y, sample_weight), _loaded)
        sizes = rows.results(rows.each("size", len, raw))
        begins = np.concatenate([[0], np.cumsum(sizes)])
        n = int(begins[-1])
        if n == 0:
            raise ValueError("X has no rows of positive weight in any of its partitions.")
        filled = np.flatnonzero(sizes)
        raw, begins, sizes = [raw[i] for i in filled], begins[filled], [sizes[i] for i in filled]
        seed = self._seed()
        sample = np.sort(np.random.default_rng(seed).choice(n, min(n, SAMPLE), replace=False))
        places = [within(sample, begin, size) for begin, size in zip(begins, sizes, strict=True)]
        table, targets, weights = rows.combined(rows.each("sample", _taken, raw, places), joined)
        shell = self.get_combined_model(fitted=False)
        shell._chosen_besides = ()  # scales of the targets come from sums over all rows, of the targets as they are
        X_sample, y_sample = shell._learn(table, targets, weights, **self._learning())
        for name in ("n_features_in_", "feature_names_in_", "encoding_"):
            if hasattr(shell, name):
                setattr(self, name, getattr(shell, name))
        parts = rows.each("encode", _encoded, raw, begins.tolist(), [rows.shared(shell)] * len(raw))
        problem = self._problem_of(rows, parts, Rows(X_sample, y_sample, weights, roles=shell._roles(X_sample, weights)))
        settings = shell._with_choice(shell._settings(), problem, None, Run())
        settings = replace(settings, seed=seed)
        groups = unit_groups(problem, settings, self.solver)
        training = ClusterTraining(rows, parts, n, problem, sample, settings, groups, _plan(n, problem, groups))
        self.trained_ = training.train(self.verbose)
        return self

    def _refuse(self) -> None:
        """What a cluster does not do, named before any work."""
        for name, only in ONLY.items():
            if getattr(self, name) != only:
                raise ValueError(f"{name}={getattr(self, name)!r} is not known on a Dask cluster; use {name}={only!r}.")
        loss, sizes, solver = (getattr(self, name) for name in ("loss", "hidden_layer_sizes", "solver"))
        given = self.tuning == "none" and loss is None
        if given or loss not in (None, "squared"):
            raise ValueError(f"loss={loss!r}: on a Dask cluster the first layer has a squared loss; use loss='squared'.")
        if sizes is not None and len(np.atleast_1d(sizes)) != 1:
            raise ValueError(f"hidden_layer_sizes={sizes!r}: on a Dask cluster networks have one hidden layer.")
        if type(solver) is not LowRank and solver not in ("auto", "low_rank"):
            raise ValueError(
                f"solver={solver!r}: a Dask cluster has landmarks only; use 'auto' or LowRank(rank=..., leaf_rows=0)."
            )
        if isinstance(solver, LowRank) and solver.leaf_rows:
            raise ValueError(f"solver={solver!r}: a Dask cluster has no leaves; use LowRank(rank=..., leaf_rows=0).")
        if self.residuals not in ("auto", "local", "crossfit", None):
            raise ValueError(f"residuals={self.residuals!r} is not known on a Dask cluster; use 'crossfit' or None.")

    def _learning(self) -> dict[str, Any]:
        """Options of the validation of targets."""
        return {}

    def _problem_of(self, rows: ClusterRows, parts: Sequence[Any], sample: Rows) -> Problem:
        raise NotImplementedError

    def _scalers(self, rows: ClusterRows, parts: Sequence[Any], sample: Rows, *, numeric: bool) -> list[Scaler]:
        """Of the features and, where they are numbers, of the targets; from two passes over all rows."""
        each = [numeric] * len(parts)
        total, *sums = rows.combined(rows.each("moments", row_sums.sums, parts, each))
        means = tuple(one / total for one in sums)
        if not self.standardize:
            return [Scaler.identity(len(mean)) for mean in means]
        squares = rows.combined(rows.each("moments", row_sums.squares, parts, [rows.shared(means)] * len(parts)))
        indicators = (sample.indicators, None)
        each_one = zip(means, squares, indicators, strict=False)
        return [Scaler.of_moments(mean, square / total, own) for mean, square, own in each_one]

    def _of_sample(self, sample: Rows, scaler: Scaler, targets: Any) -> Problem:
        """The problem of the sample, on the scale of all rows."""
        X = scaler.forward(sample.X)
        options = self._gram_options() | {"solver": "low_rank"}
        outputs, kind = targets.outputs(sample.y), self._targets()
        return Problem(sample, scaler, targets, X, outputs, Grams(X, **options), kind, self.standardize)

    # -- prediction ----------------------------------------------------------------------------------------------------------

    def get_combined_model(self, *, fitted: bool = True) -> Any:
        """A local model that knows no cluster: it predicts, is saved, exported and copied as one that was trained locally.

        Parameters
        ----------
        fitted : bool, default=True
            Whether it has what was trained, or the parameters only.

        Returns
        -------
        KStoNetRegressor or KStoNetClassifier
        """
        local = self._local(**self.get_params(deep=False))
        if fitted:
            check_is_fitted(self)
            for name in ("n_features_in_", "feature_names_in_", "encoding_", "trained_"):
                if hasattr(self, name):
                    setattr(local, name, getattr(self, name))
        return local

    def _mapped(self, method: str, X: Any, width: tuple[int, ...], **options: Any) -> Any:
        """Lazily for a collection, at once for local rows."""
        model = self.get_combined_model()
        if not is_collection(X):
            return getattr(model, method)(X, **options)
        return lazily(partial(_call, model, method, options), X, width)


class DaskKStoNetRegressor(_DaskEstimator, KStoNetRegressor):
    """Kernel-expanded stochastic neural network for regression, on Dask arrays and data frames.

    The parameters are those of :class:`~kstonet.KStoNetRegressor`. The first layer has a squared loss and expands on landmarks
    that all workers share (``solver=LowRank(rank=..., leaf_rows=0)``); there is one hidden layer. What is not given is chosen
    on a sample of at most 20,000 rows, and the target is learned as it is. Results do not depend on the number of workers and
    partitions, up to rounding.

    Attributes
    ----------
    client : distributed.Client
        Set it to use another cluster than the active one.
    timeout : float
        Seconds without a usable cluster after which ``fit`` gives up, 120 by default.
    trained_ : TrainedNetwork
        What was trained; small, and on the client.

    See Also
    --------
    kstonet.KStoNetRegressor : For rows that fit into one machine.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from kstonet.dask import DaskKStoNetRegressor
    >>> from kstonet.gram import LowRank
    >>> with Client(processes=False, n_workers=1, dashboard_address=None) as client:
    ...     X = da.random.default_rng(0).normal(size=(400, 2), chunks=(100, 2))
    ...     model = DaskKStoNetRegressor(solver=LowRank(rank=30, leaf_rows=0), max_iter=3, random_state=0)
    ...     lazy = model.fit(X, da.sin(X[:, 0])).predict(X)
    ...     error = float(abs(lazy - da.sin(X[:, 0])).mean().compute())
    >>> error < 0.2
    True
    """

    _local = KStoNetRegressor

    def _refuse(self) -> None:
        super()._refuse()
        if self.target_transform in MAPS:
            raise ValueError(
                f"target_transform={self.target_transform!r} is not known on a Dask cluster; transform y, and predictions back."
            )

    def _learning(self) -> dict[str, Any]:
        return {"multi_output": True, "y_numeric": True}

    def _problem_of(self, rows: ClusterRows, parts: Sequence[Any], sample: Rows) -> Problem:
        scalers = self._scalers(rows, parts, sample, numeric=True)
        return self._of_sample(sample, scalers[0], NumericTargets(scalers[1], sample.y.ndim == 1))

    def predict(self, X: Any) -> Any:  # type: ignore[override]  # deviations are those of a local model
        """Predict; lazily, as a collection of the same partitions, for a collection."""
        return self._mapped("predict", X, _outputs(self))

    def predict_interval(  # type: ignore[override]  # calibrations by groups are those of a local model
        self, X: Any, coverage: float = 0.95, kind: str = "prediction"
    ) -> Any:
        """Intervals for new observations ("prediction") or for their mean ("confidence"); lazily for a collection."""
        return self._mapped("predict_interval", X, (*_outputs(self), 2), coverage=coverage, kind=kind)


class DaskKStoNetClassifier(_DaskEstimator, KStoNetClassifier):
    """Kernel-expanded stochastic neural network for classification, on Dask arrays and data frames.

    The parameters are those of :class:`~kstonet.KStoNetClassifier`; see :class:`DaskKStoNetRegressor`. The first layer is
    fitted on all rows, the head on a sample of at most 20,000 rows, each left out of the first layer. The scale of the logits'
    variance is not learnt: intervals of probabilities are those of the recursion.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from kstonet.dask import DaskKStoNetClassifier
    >>> from kstonet.gram import LowRank
    >>> with Client(processes=False, n_workers=1, dashboard_address=None) as client:
    ...     X = da.random.default_rng(0).normal(size=(400, 2), chunks=(100, 2))
    ...     y = (X[:, 0] * X[:, 1] > 0).astype(int)
    ...     model = DaskKStoNetClassifier(solver=LowRank(rank=30, leaf_rows=0), max_iter=2, random_state=0).fit(X, y)
    ...     accuracy = float((model.predict(X) == y).mean().compute())
    >>> accuracy > 0.9
    True
    """

    _local = KStoNetClassifier

    def _problem_of(self, rows: ClusterRows, parts: Sequence[Any], sample: Rows) -> Problem:
        labels = rows.combined(rows.each("labels", row_sums.labels, parts), _union)
        check_classification_targets(labels)
        if len(labels) < 2:
            raise ValueError(f"y holds one class only, {labels.tolist()[0]!r}; a classifier needs at least two classes.")
        (scaler,) = self._scalers(rows, parts, sample, numeric=False)
        return self._of_sample(sample, scaler, self._targets().of(labels, None, self.standardize))

    def _refuse(self) -> None:
        super()._refuse()
        if self.class_weight is not None:
            raise ValueError(f"class_weight={self.class_weight!r} is not known on a Dask cluster; give sample_weight.")

    def predict(self, X: Any) -> Any:
        """The most probable class; lazily, as a collection of the same partitions, for a collection."""
        return self._mapped("predict", X, ())

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities; lazily for a collection."""
        return self._mapped("predict_proba", X, (len(self.classes_),))


def _outputs(model: Any) -> tuple[int, ...]:
    """Axes of a prediction after the first."""
    check_is_fitted(model)
    targets = model.trained_.targets
    return () if targets.single else (targets.n_outputs,)


def _call(model: Any, method: str, options: dict[str, Any], X: Any) -> Any:
    if not len(X):
        X = np.zeros((1, model.n_features_in_)) if not hasattr(X, "columns") else X
        return getattr(model, method)(X, **options)[:0]
    return getattr(model, method)(X, **options)


def _loaded(X: Any, y: Any, weights: Any = None) -> Part:
    """One partition as it was given, without the rows of weight zero."""
    y = np.asarray(y)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if len(X) != len(y) or (weights is not None and len(weights) != len(y)):
        raise ValueError(
            f"a partition has {len(X)} rows of X, {len(y)} of y"
            f"{'' if weights is None else f' and {len(weights)} weights'}; divide them alike."
        )
    if weights is None:
        return Part(X, y, None)
    weights = np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must hold finite numbers that are not negative.")
    counted = np.flatnonzero(weights > 0)
    return Part(_rows(X, counted), y[counted], weights[counted])


def _rows(X: Any, chosen: np.ndarray) -> Any:
    return X.iloc[chosen] if hasattr(X, "iloc") else np.asarray(X)[chosen]


def _taken(part: Part, places: np.ndarray) -> tuple[Any, ...]:
    """Some rows of a partition."""
    return _rows(part.X, places), part.y[places], None if part.weights is None else part.weights[places]


def _encoded(part: Part, begin: int, shell: Any) -> Part:
    """The rows as numbers, as the sample says that they are encoded."""
    if part.y.dtype.kind == "f" and not np.isfinite(part.y).all():
        raise ValueError("y holds values that are not finite; leave out such rows, or give them the weight zero.")
    return Part(shell._read(part.X), part.y, part.weights, begin)


def _union(results: Sequence[np.ndarray]) -> np.ndarray:
    return np.unique(np.concatenate(results))


def _plan(n: int, problem: Problem, groups: Sequence[Group]) -> Plan:
    """What is held, on all workers together."""
    rank = max(group.landmarks.rank for group in groups)
    numbers = sum(group.landmarks.rank for group in groups)
    left_out = 0.0
    for group in groups:
        kept = float((group.landmarks.features(group.kernel, problem.X) ** 2).sum())
        trace = float(np.sum(group.kernel.diagonal(problem.X)))
        left_out = max(left_out, 1.0 - kept / trace if trace else 0.0)
    p = problem.X.shape[1]
    return Plan("low_rank", "rows on a Dask cluster", n, p, n * (4 * numbers + 8 * p), 0.0, rank, 0, max(left_out, 0.0))
