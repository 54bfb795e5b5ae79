"""A multi-target support vector regression: one kernel matrix, all targets, certified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from kstonet._checks import check_range, require, whole, within_range
from kstonet._progress import write
from kstonet.estimators.inputs import TableInputMixin
from kstonet.estimators.links import DocumentationLink
from kstonet.estimators.weights import validated_weights
from kstonet.gram import Gram, Kernel, make_gram, make_kernel
from kstonet.gram.expansion import Expansion, ExpansionPart
from kstonet.solvers.svr import solve_svr
from kstonet.solvers.svr_solution import SVRProgress, SVRSolution
from kstonet.threads import single_threaded


class MultiTargetSVR(TableInputMixin, DocumentationLink, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """ε-support vector regression for one or many targets, on one kernel matrix.

    All targets are solved together: the kernel matrix and its factor are computed once, every iteration is a few matrix
    products for all targets at once, and :meth:`refit` solves for new targets on the same rows at a fraction of the cost of
    the first fit. Every solution carries its duality gap. The problem, and the scaling of ``C``, are those of
    :class:`sklearn.svm.SVR`.

    Parameters
    ----------
    C : float or array of shape (n_targets,), default=1.0
        Weight of the loss, one value or one per target.
    epsilon : float or array of shape (n_targets,), default=0.1
        Half-width of the tube in which errors cost nothing.
    kernel : str or callable, default="rbf"
        "rbf", "laplacian", "matern12", "matern32", "matern52", "exponential", "poly", "linear", "arccos0", "arccos1",
        "arccos2", "tanimoto", "precomputed", a name of :func:`kstonet.gram.register_kernel`, or a callable ``k(X, Y)`` for the
        matrix of kernel values.
    gamma : float or {"scale", "auto", "median"}, default="scale"
        Inverse squared width: a number, 1/(p·Var x), 1/p, or one over the median squared distance.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel. The default is that of :func:`sklearn.metrics.pairwise.polynomial_kernel` and of all
        estimators here; :class:`sklearn.svm.SVR` has 0, with which a cubic kernel has cubic terms only.
    length_scale : array of shape (n_features,), optional
        One length scale per feature: features are divided by it before the kernel sees them.
    tol : float, default=1e-3
        Relative duality gap at which a target is finished.
    max_iter : int, default=2000
        Bound on iterations.
    sparse : bool, default=True
        Return dual vectors that are themselves optimal to ``tol``, with exact zeros, so that ``support_`` exists and the model
        keeps support vectors only. With False the fitted *function* is certified to the same ``tol``, several times faster.
    warm_start : bool, default=False
        Start :meth:`fit` from the previous solution where X and the number of targets are unchanged.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the stored kernel matrix; float32 halves the memory.
    max_memory : float, optional
        Bytes the kernel matrix and its factor may take; default 80 % of the available memory.
    verbose : int, default=0
        Print a line at every check.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_targets, n_support)
        Coefficients of the support vectors (of all training rows with ``sparse=False``).
    support_ : ndarray of shape (n_support,)
        Training rows that are support vectors of at least one target; only with ``sparse=True``.
    n_support_ : ndarray of shape (n_targets,)
        Support vectors of each target; only with ``sparse=True``.
    intercept_ : ndarray of shape (n_targets,)
        Constants of the fitted functions.
    duality_gap_ : ndarray of shape (n_targets,)
        Certified relative gap.
    n_iter_ : ndarray of shape (n_targets,)
        Iterations of the solver.
    solution_ : SVRSolution
        The whole record: primal and dual values, margin and bounded sets, KKT distance, factorisations, seconds.
    kernel_ : Kernel
        With ``gamma`` resolved.
    encoding_ : TableEncoding
        How the columns of X become numbers: what stands in for missing values, and the categories.
    n_features_in_ : int
        Columns of X, before they are encoded.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where all are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet import MultiTargetSVR
    >>> X = np.linspace(0, 6, 80)[:, None]
    >>> Y = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 0])])
    >>> model = MultiTargetSVR(C=10, epsilon=0.05).fit(X, Y)
    >>> model.predict([[1.0]]).round(1)
    array([[0.8, 0.5]])
    >>> bool((model.duality_gap_ <= 1e-3).all())
    True
    >>> model.refit(2 * Y).predict([[np.pi / 2]]).shape
    (1, 2)
    """

    solution_: SVRSolution
    kernel_: Kernel
    _X_fit: np.ndarray
    _gram: Gram | None

    def __init__(
        self,
        C: Any = 1.0,
        epsilon: Any = 0.1,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: float | str = "scale",
        *,
        degree: int = 3,
        coef0: float = 1.0,
        length_scale: Any = None,
        tol: float = 1e-3,
        max_iter: int = 2000,
        sparse: bool = True,
        warm_start: bool = False,
        dtype: str = "float64",
        max_memory: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.length_scale = length_scale
        self.tol = tol
        self.max_iter = max_iter
        self.sparse = sparse
        self.warm_start = warm_start
        self.dtype = dtype
        self.max_memory = max_memory
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MultiTargetSVR:
        """Fit all targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, or the (n_samples, n_samples) kernel matrix with ``kernel="precomputed"``.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C for every sample.

        Returns
        -------
        MultiTargetSVR
            Fitted.
        """
        self._check_parameters()
        X, y = self._learn(X, y, sample_weight, multi_output=True, y_numeric=True)
        y = y.astype(np.float64)
        weights = validated_weights(sample_weight, X)
        check_range("X", X)
        check_range("y", y)
        kernel = make_kernel(
            self.kernel,
            X,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            length_scale=self.length_scale,
            sample_weight=weights,
        )
        previous = None
        if self.warm_start and hasattr(self, "solution_") and np.array_equal(X, self._X_fit) and kernel == self.kernel_:
            previous = self.solution_
        else:
            self._gram = None  # release an old matrix before a new one is made
            self._X_fit, self.kernel_ = X, kernel
        return self._solve(y, weights, previous)

    def _check_parameters(self) -> None:
        """Refuse what is not a number; the solver checks the values themselves, and that there is one for each target."""
        for name in ("C", "epsilon"):
            require(name, getattr(self, name), lambda v: np.asarray(v).dtype.kind in "fiu", "a number, or one for each target")
        require("tol", self.tol, lambda v: v > 0, "a positive number; it is a relative duality gap")
        require("max_iter", self.max_iter, whole, "a whole number >= 1")
        require("max_memory", self.max_memory, lambda v: v is None or v > 0, "a positive number of bytes, or None")

    def refit(self, y: Any, sample_weight: Any = None) -> MultiTargetSVR:
        """Fit new targets on the rows of the last :meth:`fit`, reusing the kernel matrix, its factor and the last solution.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            New targets; their number may differ.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        MultiTargetSVR
            Fitted on the new targets.
        """
        check_is_fitted(self)
        y = np.asarray(y, dtype=np.float64)
        check_range("y", y)
        n = self._X_fit.shape[0]
        if y.ndim not in (1, 2) or y.shape[0] != n:
            raise ValueError(f"y has shape {y.shape}; refit needs targets for the {n} rows of the last fit.")
        weights = validated_weights(sample_weight, y)
        return self._solve(y, weights, self.solution_)

    def _solve(self, y: np.ndarray, weights: np.ndarray | None, previous: SVRSolution | None) -> MultiTargetSVR:
        targets = np.ascontiguousarray(y.T) if y.ndim == 2 else y[None, :].copy()
        if previous is not None and previous.coef.shape != targets.shape:
            previous = None
        with within_range(), single_threaded():
            if self._gram is None:
                self._gram = make_gram(self._X_fit, self.kernel_, solver="dense", dtype=self.dtype, max_memory=self.max_memory)
            self.solution_ = solution = solve_svr(
                self._gram,
                targets,
                self.C,
                self.epsilon,
                sample_weight=weights,
                tol=self.tol,
                support=self.sparse,
                max_iter=self.max_iter,
                warm_start=previous,
                callback=self._report if self.verbose else None,
            )
        self._single_target = y.ndim == 1
        kept = np.flatnonzero((solution.coef != 0).any(axis=0)) if solution.tight else np.arange(targets.shape[1])
        self._kept_rows = kept
        self.dual_coef_ = solution.coef[:, kept]
        self.intercept_ = solution.intercept
        self.duality_gap_ = solution.gap
        self.n_iter_ = np.maximum(solution.n_iter, 1)
        return self

    def _report(self, progress: SVRProgress) -> None:
        done = int((progress.gap <= self.tol).sum())
        write(
            f"[MultiTargetSVR] iteration {progress.iteration:5d}  worst gap {progress.gap.max():.2e}  "
            f"{done}/{len(progress.gap)} targets done  {progress.seconds:.1f} s\n"
        )

    @property
    def support_(self) -> np.ndarray:
        """Training rows that are support vectors of at least one target."""
        self._require_support("support_")
        return self._kept_rows

    @property
    def n_support_(self) -> np.ndarray:
        """Number of support vectors of each target."""
        self._require_support("n_support_")
        return np.asarray(self.solution_.support.sum(axis=1))

    def _require_support(self, name: str) -> None:
        if not hasattr(self, "solution_"):
            raise AttributeError(f"{name} exists after fit; call fit first.")
        if not self.solution_.tight:
            raise AttributeError(f"{name} needs sparse=True (or tol <= 1e-6): this fit certified the function only.")

    def predict(self, X: Any) -> np.ndarray:
        """Predict all targets, in blocks of bounded memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            With ``kernel="precomputed"``, kernel values against all training rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self)
        X = self._read(X)
        out = np.concatenate([values[0] for _, values, _ in self.expansion().blocks(X)])
        return out[:, 0] if self._single_target else out

    def predict_gradient(self, X: Any) -> np.ndarray:
        """Gradients of :meth:`predict` with respect to the columns of X, in closed form.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to differentiate at.

        Returns
        -------
        ndarray of shape (n_samples, n_encoded) or (n_samples, n_targets, n_encoded)
            One derivative for each column that X becomes: the columns of X themselves where all are numbers.
        """
        check_is_fitted(self)
        (part,) = self.expansion().parts
        gradients = np.asarray(self.kernel_.gradient(self._read(X), part.basis, part.coef[0]))
        return gradients[:, 0] if self._single_target else gradients

    def expansion(self) -> Expansion:
        """The fitted functions at new rows: their support vectors and coefficients."""
        check_is_fitted(self)
        kept, units = self._kept_rows, np.arange(len(self.intercept_))
        basis = self.kernel_.basis(self._X_fit, kept)
        return Expansion((ExpansionPart(self.kernel_, basis, kept, self.dual_coef_[None], units),), self.intercept_[None])

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state["_gram"] = None  # large, and rebuilt from the training rows when refit asks for it
        return state

    @property
    def _takes_kernel_values(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"
