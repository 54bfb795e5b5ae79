"""The search behind "tune" with the user's own values and validation parts, and its table."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
    is_classifier,
)
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _routing_enabled, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_method_params, check_is_fitted

import kstonet
from kstonet.checkpoint import open_run
from kstonet.estimators.base import WITHOUT_EFFECT
from kstonet.estimators.classification import known_classes
from kstonet.estimators.display import FittedDisplayMixin
from kstonet.estimators.inputs import TableInputMixin
from kstonet.estimators.kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.estimators.links import DocumentationLink
from kstonet.estimators.weights import validated_weights
from kstonet.problem import Rows
from kstonet.tuning.candidates import CS, KERNELS, LENGTH_SCALES, SIZES, TUNABLE, Grids, gamma_grid, hashable
from kstonet.tuning.parts import Part, larger_part, validation_parts
from kstonet.tuning.recipes import EVIDENCE
from kstonet.tuning.relevance import evidence_kernels
from kstonet.tuning.search import Search, search

_PARAMETERS = """
    The search that ``"tune"`` starts inside a {base}, with values of your own, and a table of what was tried. It goes from
    cheap to expensive: kernels and values of C are screened by the first layer alone; the best are trained for a few
    iterations, other sizes and noise on the best of them; fewer and fewer go on to ``max_iter``. The best is then fitted on
    all rows.

    Parameters
    ----------
    estimator : {base}, optional
        Gives all other settings; default ``{base}()``. With its ``checkpoint`` the search can be gone on with, too.
    kernel : sequence, default=("rbf", "matern32", "laplacian")
        Names, objects or functions, as in :class:`{base}`.
    gamma : sequence, optional
        Numbers or "scale", "auto", "median"; by default 1/4, 1/2, 1, 2 and 4 times "scale".
    length_scale : sequence, default=(None, "evidence")
        None: all features alike. "evidence": one per feature, learned from the rows (kernels "rbf", "laplacian", "matern32"
        and "matern52"). Or arrays of shape (n_features,).
    C : sequence of float, default=(1, 3, 10, 30, 100, 300, 1000)
        Weights of the loss of the first layer.
    hidden_layer_sizes : sequence, default=((5,), (20,), (20, 5))
        Units of every hidden layer.
    noise_variance : sequence, default=("auto",)
        Numbers, schedules or "auto".
    cv : int, splitter or iterable, optional
        As in scikit-learn; None: the random 80/20 parts of "tune", of at most 3,000 rows.
    n_jobs : int, optional
        Threads over the validation parts; the result does not depend on it.
    verbose : int, default=0
        1 says on standard error what is done, 2 adds a line per network.
    random_state : int, RandomState or None, default=None
        Draws the validation parts and seeds the trainings; also the last one where the estimator has no ``random_state``.

    Attributes
    ----------
    best_estimator_ : {base}
        Fitted on all rows with the best values. :func:`kstonet.save`, :func:`kstonet.to_onnx` and
        :func:`kstonet.report.write_report` take the search and mean this estimator.
    best_params_ : dict
        Its ``kernel``, ``gamma``, ``length_scale``, ``C``, ``hidden_layer_sizes`` and ``noise_variance``. Two kernels that
        share the first layer are lists, one value per unit.
    best_score_ : float
        The mean validation *loss*, the smaller the better: {loss}.
    best_index_ : int
        Its row in ``cv_results_``.
    reason_ : str
        What was chosen, and why.
    cv_results_ : dict of arrays
        One entry per candidate and number of ``iterations`` (0: squared error of the first layer alone), in the order they were
        tried: ``params`` and ``param_*``; ``split{{i}}_test_score``, ``mean_test_score`` and ``std_test_score``: minus the
        loss, so that larger is better, NaN on parts that a kernel was dropped before; ``rank_test_score``: those that were
        trained longest come first.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where all are strings.

    See Also
    --------
    {base} : Takes "tune" for single parameters.
"""


def _of_best(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of the best estimator."""

    @wraps(method)
    def delegate(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_is_fitted(self)
        answer = getattr(self.best_estimator_, method.__name__)(*args, **kwargs)
        return self if answer is self.best_estimator_ else answer

    return delegate


class BaseKStoNetCV(
    FittedDisplayMixin, TableInputMixin, DocumentationLink, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Both searches."""

    _base: type[Any]

    best_estimator_: Any
    best_params_: dict[str, Any]
    best_score_: float
    best_index_: int
    reason_: str
    cv_results_: dict[str, Any]

    def __init__(
        self,
        estimator: Any = None,
        *,
        kernel: Any = KERNELS,
        gamma: Any = None,
        length_scale: Any = LENGTH_SCALES,
        C: Any = CS,
        hidden_layer_sizes: Any = SIZES,
        noise_variance: Any = ("auto",),
        cv: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.kernel = kernel
        self.gamma = gamma
        self.length_scale = length_scale
        self.C = C
        self.hidden_layer_sizes = hidden_layer_sizes
        self.noise_variance = noise_variance
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Search, and fit the best on all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), for a regressor also (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero have no say.
        **params : dict
            For the splitter ``cv``: the ``groups`` of GroupKFold and its like, or what it requests under metadata routing.

        Returns
        -------
        self
        """
        if not isinstance(self.estimator, self._base | None):
            raise TypeError(f"estimator={self.estimator!r:.80} must be a {self._base.__name__}, or None for one with defaults.")
        base = self._base() if self.estimator is None else clone(self.estimator)
        base.set_params(tuning="none", kernel="precomputed" if self._precomputed else "rbf")  # candidates bring theirs
        regression = not is_classifier(base)
        matrix, target = self._learn(X, y, sample_weight, multi_output=regression, y_numeric=regression)
        if regression:
            target = target.astype(np.float64)
        else:
            check_classification_targets(target)
        weights = validated_weights(sample_weight, matrix) if regression else base._row_weights(target, sample_weight, matrix)
        counted = np.ones(len(matrix), dtype=bool) if weights is None else weights > 0
        rows = Rows(matrix, target, weights, self._precomputed, self._indicators).that_count()
        if not regression:
            known_classes(rows)  # refuses a single one
        problem = base._problem(rows)
        grids = self._grids(problem.X, problem.weights)
        clone(base).set_params(noise_variance=grids.noise_variance[0])._check_parameters()  # before minutes of work
        parameters = {name: value for name, value in self.get_params().items() if not name.endswith(WITHOUT_EFFECT)}
        plan = {"estimator": {type(self).__name__: kstonet.__version__}, "parameters": parameters}
        plan["data"] = {"training rows": [rows.X, rows.y, rows.weights], "parameters of the splitter": params}
        folder = None if base.checkpoint is None else Path(base.checkpoint) / "search"
        with open_run(folder, plan) as run:
            seed = run.value("seed", lambda: check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

            def found_by_search() -> dict[str, Any]:
                return vars(
                    search(
                        problem,
                        base._settings(),
                        grids,
                        self._parts(rows, seed, regression, counted, self._split_params(params)),
                        larger_part(len(rows.X), seed, None if regression else rows.y) if self.cv is None else None,
                        seed=seed,
                        n_jobs=self.n_jobs,
                        verbose=self.verbose,
                        run=run.within("search"),
                    )
                )

            found = Search(**run.value("search", found_by_search))
        self.best_params_, self.best_score_, self.reason_ = found.parameters, found.loss, found.reason
        self.cv_results_ = _results(found.table)
        self.best_index_ = int(self.cv_results_["rank_test_score"].argmin())
        if base.random_state is None:
            base.set_params(random_state=seed)
        self.best_estimator_ = base.set_params(**found.parameters).fit(X, y, sample_weight)
        return self

    def _grids(self, X: np.ndarray, weights: np.ndarray | None) -> Grids:
        given = {name: hashable(getattr(self, name)) for name in TUNABLE}
        if given["gamma"] is None:
            scale = given["length_scale"]
            given["gamma"] = gamma_grid(X, weights, scale[0] if len(scale) == 1 and scale[0] != EVIDENCE else None)
        choices: dict[str, tuple[Any, ...]] = {}
        for name, values in given.items():
            if not isinstance(values, tuple) or not values:
                raise ValueError(f"{name}={values!r} must be a sequence of values to choose from, such as [{values!r}].")
            choices[name] = tuple(map(hashable, values))
        if not all(isinstance(C, float | int) and C > 0 for C in choices["C"]):
            raise ValueError(f"C={self.C!r} must hold positive numbers only, such as [1, 10, 100].")
        grids = Grids(**(choices | {"C": tuple(sorted(set(choices["C"])))}))
        if "precomputed" in grids.kernel and not self._precomputed:
            raise ValueError(
                f"kernel={self.kernel!r}: X holds features or kernel values; 'precomputed' must be the only choice."
            )
        if not grids.recipes:
            known = ", ".join(evidence_kernels())
            raise ValueError(f"kernel={self.kernel!r}: length_scale='evidence' needs a kernel among {known}.")
        return grids

    def _parts(self, rows: Rows, seed: int, regression: bool, counted: np.ndarray, params: dict[str, Any]) -> list[Part]:
        X, y = rows.X, rows.y
        if self.cv is None:
            return validation_parts(len(X), seed, None if regression else y)
        params = _check_method_params(counted, params, indices=np.flatnonzero(counted))
        parts = list(check_cv(self.cv, y, classifier=not regression).split(X, y, **params))
        if not (isinstance(self.cv, Integral) or hasattr(self.cv, "split")):  # an iterable numbers the rows as they were given
            place = np.where(counted, np.cumsum(counted) - 1, -1)
            parts = [tuple(place[part][place[part] >= 0] for part in pair) for pair in parts]
        if not regression and any(not np.isin(y[held_out], y[fit]).all() for fit, held_out in parts):
            raise ValueError(f"cv={self.cv!r} validates on classes that its rows to fit on lack; use StratifiedKFold, or None.")
        return parts

    def _split_params(self, params: dict[str, Any]) -> dict[str, Any]:
        if params and _routing_enabled():
            routed = process_routing(self, "fit", **params)
            return dict(routed.splitter.split) if "splitter" in routed else {}
        unknown = params.keys() - {"groups"}
        if unknown or (params and not hasattr(self.cv, "split")):
            raise TypeError(
                f"fit got {', '.join(sorted(params))} with cv={self.cv!r}; besides sample_weight it takes groups, for a "
                "splitter that uses them, such as cv=GroupKFold()."
            )
        return params

    def get_metadata_routing(self) -> MetadataRouter:
        """``sample_weight`` is used by the search itself; the splitter ``cv`` may request more.

        Returns
        -------
        MetadataRouter
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        if hasattr(self.cv, "split"):
            router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        return router

    transform = _of_best(KStoNetRegressor.transform)
    predict_gradient = _of_best(KStoNetRegressor.predict_gradient)
    feature_importance = _of_best(KStoNetRegressor.feature_importance)
    sufficient_directions = _of_best(KStoNetRegressor.sufficient_directions)
    calibrate = _of_best(KStoNetRegressor.calibrate)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Of the best estimator."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.feature_importances_)

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One record per iteration of the best estimator."""
        check_is_fitted(self)
        return list(self.best_estimator_.history_)

    def _displayed(self) -> Any:
        return getattr(self, "best_estimator_", None)

    @property
    def _n_features_out(self) -> int:
        return int(self.best_estimator_._n_features_out)

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, list | tuple) and list(self.kernel) == ["precomputed"]

    @property
    def _takes_kernel_values(self) -> bool:
        return self._precomputed


def _results(table: list[dict[str, Any]]) -> dict[str, Any]:
    """The table of a search as ``cv_results_`` of GridSearchCV has it."""
    fitted = np.array([row["rows"] for row in table])
    larger = fitted > fitted[0]  # the part with more rows comes last, as a part of its own
    parts = max(len(row["scores"]) for row in table)
    splits = np.full((len(table), parts + larger.any()), np.nan)
    for row, on_larger, losses in zip(table, larger, splits, strict=True):
        losses[slice(-1, None) if on_larger else slice(len(row["scores"]))] = row["scores"]
    splits = -splits
    iterations, mean = np.array([row["iterations"] for row in table]), np.nanmean(splits, axis=1)
    results: dict[str, Any] = {}
    for name in TUNABLE:
        results[f"param_{name}"] = column = np.empty(len(table), dtype=object)
        column[:] = [row[name] for row in table]
    rank = np.empty(len(table), dtype=int)
    rank[np.lexsort((-mean, -iterations, -fitted))] = np.arange(1, len(table) + 1)
    return results | {
        "params": [{name: row[name] for name in TUNABLE} for row in table],
        "iterations": iterations,
        "rows": fitted,
        **{f"split{i}_test_score": splits[:, i] for i in range(splits.shape[1])},
        "mean_test_score": mean,
        "std_test_score": np.nanstd(splits, axis=1),
        "rank_test_score": rank,
    }


class KStoNetRegressorCV(MultiOutputMixin, RegressorMixin, BaseKStoNetCV):  # noqa: D101 (it shares its parameters)
    __doc__ = f"""K-StoNet regression with kernels, C, sizes and noise chosen by cross-validation.
{_PARAMETERS.format(base="KStoNetRegressor", loss="the squared error of standardised targets")}
    Examples
    --------
    >>> import numpy as np
    >>> from kstonet import KStoNetRegressor, KStoNetRegressorCV
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> y = np.sin(2 * X[:, 0])
    >>> short = KStoNetRegressor(max_iter=3, residuals="crossfit")
    >>> search = KStoNetRegressorCV(
    ...     short, kernel=["rbf"], length_scale=[None], C=[0.1, 10], hidden_layer_sizes=[(3,)], cv=3, random_state=0
    ... ).fit(X, y)
    >>> search.best_params_["C"]
    10
    >>> search.predict_interval(X).shape
    (40, 2)
    """

    _base = KStoNetRegressor

    predict = _of_best(KStoNetRegressor.predict)
    predict_interval = _of_best(KStoNetRegressor.predict_interval)
    predict_region = _of_best(KStoNetRegressor.predict_region)
    predict_dist = _of_best(KStoNetRegressor.predict_dist)
    predict_quantiles = _of_best(KStoNetRegressor.predict_quantiles)
    predict_var = _of_best(KStoNetRegressor.predict_var)
    sample_y = _of_best(KStoNetRegressor.sample_y)


class KStoNetClassifierCV(ClassifierMixin, BaseKStoNetCV):  # noqa: D101 (it shares its parameters)
    __doc__ = f"""K-StoNet classification with kernels, C, sizes and noise chosen by cross-validation.
{_PARAMETERS.format(base="KStoNetClassifier", loss="the negative log-likelihood")}
    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kstonet import KStoNetClassifier, KStoNetClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> short = KStoNetClassifier(max_iter=2, residuals=None)
    >>> search = KStoNetClassifierCV(short, gamma=["scale"], C=[1, 10], hidden_layer_sizes=[(3,)], cv=2, random_state=0)
    >>> search.fit(X, y).score(X, y) > 0.9
    True
    >>> len(search.cv_results_["params"]) > 6
    True
    """

    _base = KStoNetClassifier

    predict = _of_best(KStoNetClassifier.predict)
    predict_proba = _of_best(KStoNetClassifier.predict_proba)
    predict_log_proba = _of_best(KStoNetClassifier.predict_log_proba)
    decision_function = _of_best(KStoNetClassifier.decision_function)
    predict_proba_interval = _of_best(KStoNetClassifier.predict_proba_interval)
    predict_set = _of_best(KStoNetClassifier.predict_set)
    calibrate = _of_best(KStoNetClassifier.calibrate)

    @property
    def classes_(self) -> np.ndarray:
        """The labels."""
        return np.asarray(self.best_estimator_.classes_)

    @property
    def calibration_temperature_(self) -> float:
        """Of the best estimator."""
        return float(self.best_estimator_.calibration_temperature_)

    @property
    def logit_variance_scale_(self) -> float:
        """Of the best estimator."""
        return float(self.best_estimator_.logit_variance_scale_)
