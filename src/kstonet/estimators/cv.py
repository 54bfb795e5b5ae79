"""The search behind "tune" with the user's own values and validation parts, and its table."""

from __future__ import annotations

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
from kstonet.estimators.cv_results import results_table
from kstonet.estimators.display import FittedDisplayMixin
from kstonet.estimators.documentation import SEARCH_PARAMETERS
from kstonet.estimators.forwarding import ForwardsIntervals, ForwardsSets, forwarded
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
        rows = Rows(matrix, target, weights, self._precomputed, self._roles(matrix, weights)).that_count()
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
        self.cv_results_ = results_table(found.table)
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

    def _has(self, name: str) -> bool:
        return hasattr(self._base, name)

    def _forward(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """The answer of the best estimator."""
        check_is_fitted(self)
        answer = getattr(self.best_estimator_, name)(*args, **kwargs)
        return self if answer is self.best_estimator_ else answer

    transform = forwarded(KStoNetRegressor.transform)
    predict_gradient = forwarded(KStoNetRegressor.predict_gradient)
    feature_importance = forwarded(KStoNetRegressor.feature_importance)
    sufficient_directions = forwarded(KStoNetRegressor.sufficient_directions)
    calibrate = forwarded(KStoNetRegressor.calibrate)

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


class KStoNetRegressorCV(ForwardsIntervals, MultiOutputMixin, RegressorMixin, BaseKStoNetCV):  # noqa: D101 (it shares its parameters)
    __doc__ = f"""K-StoNet regression with kernels, C, sizes and noise chosen by cross-validation.
{SEARCH_PARAMETERS.format(base="KStoNetRegressor", loss="the squared error of standardised targets")}
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

    predict = forwarded(KStoNetRegressor.predict)
    predict_region = forwarded(KStoNetRegressor.predict_region)


class KStoNetClassifierCV(ForwardsSets, ClassifierMixin, BaseKStoNetCV):  # noqa: D101 (it shares its parameters)
    __doc__ = f"""K-StoNet classification with kernels, C, sizes and noise chosen by cross-validation.
{SEARCH_PARAMETERS.format(base="KStoNetClassifier", loss="the negative log-likelihood")}
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

    predict = forwarded(KStoNetClassifier.predict)
    predict_proba = forwarded(KStoNetClassifier.predict_proba)
    predict_log_proba = forwarded(KStoNetClassifier.predict_log_proba)
    decision_function = forwarded(KStoNetClassifier.decision_function)
    calibrate = forwarded(KStoNetClassifier.calibrate)

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
