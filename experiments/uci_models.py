"""The models of the UCI experiment: K-StoNets column by column, the SVR beside them, the paper's networks, other rivals."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.baselines import DNNRegressor, KernelNetworkRegressor
from experiments.common import rmse
from kstonet import KStoNetRegressor
from kstonet._arrays import to_numpy
from kstonet.estimators.kstonet import FIXED
from kstonet.gram import make_gram, make_kernel
from kstonet.gram.dense import cross_blocks
from kstonet.layers.ridge_map import RidgeMap
from kstonet.solvers.svr import solve_svr
from kstonet.tuning.contest import MOST_ROWS
from kstonet.tuning.recipes import KernelRecipe, Kitchen
from kstonet.tuning.screening_ridge import ridge_fit

SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {"tuning": "fast"},
    "fixed": {},
    "rbf": {"C": "tune", "gamma": "tune"},
    "tuned": dict.fromkeys(("kernel", "gamma", "length_scale", "C", "hidden_layer_sizes", "noise_variance"), "tune"),
}
CHAINS, CHAINS_OF_MANY_ROWS, MANY_ROWS = 10, 3, 6000  # of "tuned"; an average is never worse in the mean, but takes longer
# The appendix, Section "realex4". Its gamma of yacht is the published code's 1/gamma; its λ, not printed there, is that of the
# other examples, twice this alpha.
PAPER_SETTINGS: dict[str, Any] = {
    "hidden_layer_sizes": (5,), "activation": "softplus", "epsilon": 0.01, "noise_variance": 0.01, "step_size": 5e-4,
    "friction": 0.1, "temperature": 1.0, "alpha": 5e-5, "residuals": None,
}  # fmt: skip
PAPER_EXCEPTIONS: dict[str, dict[str, Any]] = {
    "yacht": {"noise_variance": 1e-4, "step_size": 5e-6, "gamma": 1.0 / 3.0, "C": 200.0},
    "protein-tertiary-structure": {"gamma": 1.0},
    "YearPredictionMSD": {"noise_variance": 0.02, "step_size": 1e-3, "hidden_layer_sizes": (50,), "C": 1.0},
}
PAPER_C_OF_OTHERS = (1.0, 2.0, 5.0, 10.0, 20.0)
RIVALS = ("random forest", "gradient boosting", "Gaussian process", "NGBoost")
NETWORKS = ("KNN", "DNN", "MC dropout")
GP_ROWS = 1000
RIDGE_ROWS = 12_000
SEARCHED_ROWS, SVR_C, SVR_EPSILON = 5_000, (0.1, 1.0, 10.0, 100.0, 1000.0), (0.01, 0.1)  # of the chosen kernel's SVR
KNN_ROWS = 20_000  # its input is the kernel matrix; the paper leaves the two largest sets out, too


def fitted_network(
    column: str, name: str, X: np.ndarray, y: np.ndarray, device: str | None, n_jobs: int | None
) -> KStoNetRegressor:
    """The K-StoNet of a column."""
    shared = {"random_state": 0, "device": device, "n_jobs": n_jobs}
    if column == "paper":
        return paper_network(name, X, y, shared)
    chains = 1 if column != "tuned" else CHAINS if len(X) < MANY_ROWS else CHAINS_OF_MANY_ROWS
    settings = {"tuning": "none"} | SETTINGS[column]
    return KStoNetRegressor(**settings, n_chains=chains, **shared).fit(X, y)


def paper_network(name: str, X: np.ndarray, y: np.ndarray, shared: dict[str, Any]) -> KStoNetRegressor:
    """With the paper's settings; a C that it does not print has the smallest error on a ninth of the training rows."""
    settings = PAPER_SETTINGS | PAPER_EXCEPTIONS.get(name, {})
    network = KStoNetRegressor(tuning="none", **settings, **shared)
    if "C" not in settings:
        look, fit = np.split(np.random.default_rng(0).permutation(len(X)), [len(X) // 9])
        errors = {C: rmse(y[look], network.set_params(C=C).fit(X[fit], y[fit]).predict(X[look])) for C in PAPER_C_OF_OTHERS}
        network.set_params(C=min(errors, key=lambda C: errors[C]))
    return network.fit(X, y)


def given(network: KStoNetRegressor, name: str) -> Any:
    """The value of a parameter; where it is None, the value that goes without a choice."""
    value = getattr(network, name)
    return FIXED[name] if value is None else value


def first_layer_choice(network: KStoNetRegressor) -> dict[str, Any]:
    """The kernel and C whose first layer alone was best on the validation parts; without a search, those given."""
    if not hasattr(network, "tuning_"):
        return {name: given(network, name) for name in ("kernel", "gamma", "length_scale", "C")}
    alone = [row for row in network.tuning_["table"] if row["iterations"] == 0]
    most = max(row["rows"] for row in alone)
    alone = [row for row in alone if row["rows"] == most]  # the last word is with most rows
    parts = max(len(row["scores"]) for row in alone)
    stayed = [row for row in alone if len(row["scores"]) == parts]  # others were dropped on the way
    return min(stayed, key=lambda row: row["score"])


def predict_expansion(model: SameSearchSVR | ChosenRidge, X: np.ndarray) -> np.ndarray:
    """Means of a kernel expansion on standardised rows."""
    blocks = cross_blocks(model.kernel, model.x_scaler.transform(X), model.X)
    values = np.concatenate([values @ model.coef for _, values in blocks]) + model.intercept
    return np.ravel(model.in_units(values[:, None]))


def without_network(column: str, network: KStoNetRegressor) -> SameSearchSVR | ChosenRidge:
    """The first layer alone."""
    return ChosenRidge(network) if column == "defaults" else SameSearchSVR(network)


class ChosenRidge:
    """The kernel ridge regression that a K-StoNet's automatic choice found best, without the network.

    Where the choice has several kernels, the one with the smallest leave-one-out error.
    On standardised features and target, transformed as the network's is, and on at most ``RIDGE_ROWS`` training rows: one
    matrix is inverted.
    """

    def __init__(self, network: KStoNetRegressor) -> None:
        kernels, C = network.tuned_["kernel"], network.tuned_["C"]
        several = isinstance(kernels, list)
        #: Kernels and ridges of the first layer, each once.
        self.pairs = list(zip(kernels, C, strict=True)) if several else [(network.trained_.kernel, C)]
        self.pairs = [(kernel, 1.0 / bound) for kernel, bound in dict.fromkeys(self.pairs)]
        self.targets = network.trained_.targets
        self.in_units = self.targets.in_units

    def fit(self, X: np.ndarray, y: np.ndarray) -> ChosenRidge:
        """On the training rows."""
        target, ridge = self._prepared(X, y)
        self.choice = {"kernel": self.kernel, "ridge": ridge}
        coef, self.intercept = RidgeMap(make_gram(self.X, self.kernel), ridge).solve(target, None)
        self.coef = coef[:, 0]
        return self

    def _prepared(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
        """The standardised target and the best kernel's ridge; keeps the rows and the kernel."""
        self.order = np.random.default_rng(0).permutation(len(X))[:RIDGE_ROWS]
        self.x_scaler = StandardScaler().fit(X)
        self.X, target = self.x_scaler.transform(X[self.order]), self.targets.outputs(y[self.order])

        def left_out(pair: tuple[Any, float]) -> float:
            few = self.X[:MOST_ROWS]
            fit = ridge_fit(np.asarray(pair[0](few, few)), target[:MOST_ROWS], pair[1])
            return np.inf if fit is None else fit.score

        self.kernel, ridge = min(self.pairs, key=left_out)
        return target, ridge

    predict = predict_expansion


class ChosenSVR(ChosenRidge):
    """The support vector regression with the same kernel; C and epsilon have the smallest error on a fifth of the rows."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> ChosenSVR:
        """On the training rows, after a search on at most ``SEARCHED_ROWS`` of them."""
        target, _ = self._prepared(X, y)
        grid = np.array(list(product(SVR_C, SVR_EPSILON)))
        few = min(len(self.X), SEARCHED_ROWS)
        fitted, looked = np.split(np.arange(few), [few - few // 5])
        coef, intercept = self._solved(fitted, target, *grid.T)
        values = np.asarray(self.kernel(self.X[looked], self.X[fitted])) @ coef.T + intercept
        C, epsilon = grid[((values - target[looked]) ** 2).mean(axis=0).argmin()]
        self.choice = {"kernel": self.kernel, "C": C, "epsilon": epsilon}
        coef, intercept = self._solved(np.arange(len(self.X)), target, C, epsilon)
        self.coef, self.intercept = coef[0], intercept[0]
        return self

    def _solved(self, rows: np.ndarray, target: np.ndarray, C: Any, epsilon: Any) -> tuple[np.ndarray, np.ndarray]:
        gram = make_gram(self.X[rows], self.kernel, solver="dense")
        solution = solve_svr(gram, gram.array(np.tile(target[rows].T, (np.size(C), 1))), C, epsilon, tol=1e-4)
        return to_numpy(solution.coef), to_numpy(solution.intercept)


class SameSearchSVR:
    """The SVR with a K-StoNet's kernel and C, or those that its search found best for the first layer alone.

    On standardised features and target, solved by this library's engine to a certified gap of 1e-4: LIBSVM gives the same model
    and takes a minute at C = 1,000.
    """

    def __init__(self, network: KStoNetRegressor) -> None:
        self.network, self.choice = network, first_layer_choice(network)

    def fit(self, X: np.ndarray, y: np.ndarray) -> SameSearchSVR:
        """On all training rows; "evidence" is learned from them."""
        self.x_scaler, y_scaler = StandardScaler().fit(X), StandardScaler().fit(y[:, None])
        self.X, target, self.in_units = self.x_scaler.transform(X), y_scaler.transform(y[:, None]), y_scaler.inverse_transform
        recipe = KernelRecipe(*(self.choice[name] for name in ("kernel", "gamma", "length_scale")))
        self.kernel = make_kernel(X=self.X, **Kitchen(self.X, target, None, seed=0).parameters(recipe))
        gram = make_gram(self.X, self.kernel, solver=self.network.solver, device=self.network.device)
        solution = solve_svr(gram, gram.array(target.T), self.choice["C"], given(self.network, "epsilon"), tol=1e-4)
        self.coef, self.intercept = to_numpy(solution.coef[0]), to_numpy(solution.intercept)
        return self

    predict = predict_expansion


def rivals(n: int) -> dict[str, Any]:
    """What a user would reach for otherwise."""

    class ThinnedGP(GaussianProcessRegressor):
        def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
            rows = np.random.default_rng(0).permutation(len(X))[:GP_ROWS]
            scales = RBF(np.ones(X.shape[1]), (1e-2, 1e3))
            self.set_params(kernel=ConstantKernel() * scales + WhiteKernel(0.1, (1e-6, 10.0)))
            return super().fit(X[rows], y[rows])

    models = {
        RIVALS[0]: RandomForestRegressor(500, random_state=0),
        RIVALS[1]: HistGradientBoostingRegressor(random_state=0, early_stopping=n > 1000),
        RIVALS[2]: make_pipeline(StandardScaler(), ThinnedGP(normalize_y=True)),
    }
    with suppress(ImportError):
        from ngboost import NGBRegressor

        models[RIVALS[3]] = NGBRegressor(random_state=0, verbose=False)
    return models


def networks(n: int) -> dict[str, Any]:
    """The paper's comparators: the KNN as in its appendix, a DNN of 50 units, and the same with MC dropout."""
    dnn = {"hidden_layer_sizes": (50,), "activation": "relu", "max_epochs": 400, "batch_size": 32, "learning_rate": 0.001}
    models: dict[str, Any] = {
        NETWORKS[1]: DNNRegressor(**dnn, random_state=0),
        NETWORKS[2]: DNNRegressor(**dnn, dropout=0.05, random_state=0),
    }
    if n <= KNN_ROWS:
        sgd = {"solver": "momentum", "learning_rate": 1e-4, "momentum": 0.9, "batch_size": 1, "max_epochs": 40}
        models[NETWORKS[0]] = KernelNetworkRegressor((50,), "relu", **sgd, random_state=0)
    return models
