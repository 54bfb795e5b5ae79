"""Docstring sections that the estimators share."""

from __future__ import annotations

SHARED_PARAMETERS = """
    noise_variance : "auto", float or schedule, default="auto"
        Variance of the noise above the first layer (for a classifier, the temperature of its output layer in the imputation).
        "auto" follows the residual of the current fit. A schedule is a sequence with one number per iteration (the last one is
        kept) or a function of the iteration; tuples in place of its numbers give every layer above the first a variance of its
        own: ``[(0.001, 0.01)]`` for two hidden layers.
    penalty : {"lasso", "ridge", "scad", "mcp", "none"}, default="lasso"
        Penalty of the regression layers above the first.
    upper_layer : str, default="dense"
        Kind of the layers above the first. "dense" has Gaussian noise; :func:`kstonet.layers.register_layer` adds others.
    alpha : "auto", float or schedule, default="auto"
        Strength of the penalty, in scikit-learn's scaling. "auto" is 0.1·residual·√(log(inputs)/n), the order that the theory
        asks for, with the residual of the current fit.
    residuals : {"auto", "local", "crossfit", "training", None}, default="auto"
        Which residuals prediction intervals are learnt from, and what is learnt from them. "crossfit": training goes on for
        three iterations with each of five folds hidden (ten in regressions of fewer than 1,000 rows), and the hidden rows are
        predicted. "local", for regressions: the same residuals, and the size of the noise may differ from place to place, with
        two tails of their own where errors are skewed; both only as far as the residuals show it. "auto" is "local" for a
        K-StoNet that chooses what is left out (``tuning``), and "crossfit" otherwise. "training": plain training residuals, as
        in the paper; they are far too small where the network nearly interpolates. None prepares no intervals: training is
        faster, and the model predicts means only.
    sampler : {"sghmc", "mala", "hmc", "gibbs"}, default="sghmc"
        How hidden values are drawn: the paper's momentum update, eq. (imputationeq); the Langevin and the Hamiltonian algorithm
        with an accept step; or slice draws, one coordinate at a time. :func:`kstonet.imputation.register_sampler` adds others.
    n_imputation_steps : int, default=25
        Steps of the sampler in every iteration.
    step_size : "auto", float or schedule, default="auto"
        Step size of the sampler. "auto" is inside the stability limit by construction.
    friction : float, default=0.1
        Friction of the sampler's momentum; 1 is Langevin Monte Carlo. "hmc" makes 1/friction leapfrog steps for one step.
    temperature : "auto" or float, default="auto"
        Temperature of the sampler. 1 draws from the model's own distribution; "auto" is 1, or C/10 where C is below 10 and the
        noise of the first layer would swamp it.
    max_iter : int
        Largest number of iterations of Algorithm 1; the fixed default is 40. With a squared loss and one hidden layer the
        network stays as it is from the iteration on where others no longer help at rows that are hidden from a second chain.
    n_average : int
        Predictions are averaged over this many of the last iterations (Theorem 3); 1 uses the last one alone. The fixed default
        is 10.
    n_chains : int, default=1
        Trainings from different starts, one after the other, whose last iterations are all averaged. Three predict a little
        better than one, at three times the cost; networks of two hidden layers gain most.
    tol : float, optional
        Training stops when the loss (of the validation rows, where ``fit`` is given some) has not fallen by this fraction for
        ``n_iter_no_change`` iterations. With None it does all ``max_iter`` iterations.
    n_iter_no_change : int, default=10
        Number of iterations without improvement after which ``tol`` stops the training.
    standardize : bool, default=True
        Whether X and the targets are standardised inside the estimator.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the last iteration when it is called again on the same X. The kernel matrix is kept for it.
    max_memory : float, optional
        Bytes that a kernel matrix and its factor may take; by default 80 % of what is available.
    checkpoint : str or path, optional
        Folder in which the state of the training is kept after every iteration, the search for parameters and the intervals
        included. A ``fit`` that dies goes on there when it is called again with the same data and parameters, and ends in the
        same model. A folder of another fit is refused. Needs the extra "io".
    callback : callable, optional
        Called with the :class:`~kstonet.iro.IROState` of every iteration; the estimator can predict meanwhile.
    n_jobs : int, optional
        Number of threads, as in joblib; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the initial values and of the sampler. The same seed gives the same model.
    verbose : int, default=0
        1 shows a progress bar, 2 a line per iteration, on standard error.
"""

SHARED_ATTRIBUTES = """
    trained_ : TrainedNetwork
        The trained network: the frozen record that every prediction comes from, and that files and exports hold.
    history_ : list of dict
        One record per iteration: loss and score (and those of the validation rows), noise, step size, acceptance, SVR gap
        and iterations, support vectors, seconds per part.
    n_iter_ : int
        Number of iterations done.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much every column of X moves the prediction: standard deviation times root mean squared derivative, as shares that
        sum to one. ``feature_importance`` adds their uncertainty, and those of units and encoded columns.
    encoding_ : TableEncoding
        How the columns of X become numbers: what stands in for missing values, and the categories.
    n_features_in_ : int
        Number of columns of X, before they are encoded.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, where all of them are strings.
"""

CLASSIFIER_PARAMETERS = """    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply ``sample_weight``: a dict from labels to positive numbers (labels that it leaves
        out have the weight one), or "balanced" for weights n/(n_classes·rows of the class), with which rare classes count as
        much as frequent ones. Probabilities are then those of such a population, not of the training rows.
    ordinal : bool or sequence of labels, default=False
        Whether the classes are ordered, as grades are. True takes the order of numbers; a sequence holds all labels from the
        lowest to the highest, such as ``["low", "medium", "high"]``. All classes then share one linear predictor, which moves
        the log-odds of every class against the one below it by the same amount (the adjacent-categories logit model): fewer
        coefficients, and probabilities that respect the order. ``classes_`` stays sorted.
"""

CLASSIFIER_ATTRIBUTES = """    classes_ : ndarray of shape (n_classes,)
        The labels of the classes, sorted.
    calibration_temperature_ : float
        Number that divides the logits; at least one after ``fit``, unless probabilities have a floor.
    calibration_floor_ : ndarray of shape (n_classes,) or None
        The least probability of every class, where a share of the labels is wrong at random.
    logit_variance_scale_ : float
        Number that multiplies the variance of the logits in intervals of probabilities.
"""

TARGET_TRANSFORM = """    target_transform : {"none", "sqrt", "log"}, optional
        What is learned in place of a single target that is never negative: its square root, or the logarithm of the target plus
        a tenth of its mean. Predictions, intervals and distributions are in the units of the target all the same. Left out, it
        is chosen (see ``tuning``): where the target is skewed and its left-out errors are smaller with a transform.
"""

KSTONET_PARAMETERS = f"""
    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, optional
        Number of units of every hidden layer; the first is a layer of support vector regressions. Left out, it is chosen
        (see ``tuning``); the fixed default is (5,).
    activation : {{"softplus", "tanh", "sigmoid", "relu", "gelu", "identity"}}, default="softplus"
        Activation function of the hidden layers. The last three lie outside the paper's Assumption 1.
    tuning : {{"fast", "thorough", "none"}}, default="fast"
        How ``kernel``, ``gamma``, ``length_scale``, ``C``, ``loss``, ``epsilon``, ``hidden_layer_sizes``, ``max_iter`` and
        ``n_average`` are chosen where they are left out. "fast" chooses them from the training rows by the leave-one-out error
        of kernel ridge regressions, at the price of some kernel matrices of up to 1,600 rows; for classes it also tries a
        kernel in which features count as much as they vary (pixels, bits), and takes it where the log loss of left-out rows is
        smaller. In a regression, up to three kernels that err less together share the first layer, one of which may look along
        combinations of the features; up to 1,000 rows these are joined by what is chosen without parts of the rows, up to eight
        kernels in all. "thorough" spends several times as much on the relevance of features and on such
        combinations, and takes up to six kernels. "none" uses the fixed defaults.
        Values that you give are always respected.
{TARGET_TRANSFORM}    kernel : str, callable, Kernel or one per first-layer unit, optional
        Kernel of the support vector regressions, as in :class:`MultiTargetSVR`; the fixed default is "rbf". A name alone leaves
        widths, directions and the number of such kernels to the choice.
    gamma : float, {{"scale", "auto", "median"}} or one per first-layer unit, optional
        Inverse squared width of the kernel, as in :class:`MultiTargetSVR`; the fixed default is "scale".
    length_scale : array of shape (n_features,) or (n_units, n_features), optional
        One length scale per (standardised) feature: features are divided by it before the kernel sees them, so that a large
        value makes a feature irrelevant. A row for every first-layer unit gives each its own view of the features. The fixed
        default is the same scale for all features.
    C : float, one per first-layer unit or schedule, optional
        Weight of the loss of the support vector regressions, in scikit-learn's scaling; may be a function of the iteration. The
        larger, the closer the units follow the hidden values. The fixed default is 10.
    loss : {{"squared", "epsilon_insensitive"}}, optional
        Loss of the first layer. "squared" makes its units least-squares support vector regressions (kernel ridge regressions
        with the ridge 1/C), which estimate means and are solved in closed form: "fast" chooses it. Up to 2,400 rows it needs
        an inverse of the kernel matrix, up to 20,000 a factor of it, beyond them an approximation of low rank (see ``solver``).
        "epsilon_insensitive", the fixed default, is the paper's: units are sparse and robust against outliers.
    epsilon : float or one per first-layer unit, optional
        Half-width of the tube in which errors of a support vector regression cost nothing; the fixed default is 0.01.
    svr_tol : float, default=1e-3
        Relative duality gap to which the support vector regressions are solved.
    solver : str, LowRank or Iterative, default="auto"
        Which Gram holds the kernel matrix. "dense" is the whole matrix, "low_rank" an approximation whose size grows like the
        number of rows: :class:`kstonet.gram.LowRank` says which, and gives it another rank. "iterative" is the exact kernel in
        the same memory, for a GPU and time to spare (:class:`kstonet.gram.Iterative`). "auto" is "low_rank" where the
        matrix does not fit into memory, and with a squared loss on a CPU from 20,000 rows on; on a GPU, a squared loss has
        "iterative" instead up to 200,000 rows. ``explain_plan`` says what it will be, and ``plan_`` what it was.
        :func:`kstonet.gram.register_gram` adds others.
    device : str, optional
        Where the kernel matrix lives, hidden values are imputed, regressions are solved and predictions are computed: None is
        NumPy on the CPU, "cuda" a GPU (any name that PyTorch knows; extra "gpu"). A fitted model predicts elsewhere after
        ``set_params(device=...)``, and on the CPU, with a warning, where its device is missing.{SHARED_PARAMETERS}
    Notes
    -----
    ``hidden_layer_sizes``, ``kernel``, ``gamma``, ``length_scale``, ``C`` and ``noise_variance`` also take "tune": these
    parameters alone are then chosen by training networks on validation parts, and others that are left out have their fixed
    defaults. Such a search uses at most 3,000 of the training rows in several random 80/20 parts, and the network is then
    trained on all rows; it costs the iterations of 10 to 20 trainings.

    A training that ``warm_start`` goes on with keeps what was chosen.

    Attributes
    ----------
    tuned_ : dict
        The values that were chosen. ``KStoNet...(tuning="none", **model.tuned_)`` trains the same network again.
    tuning_ : dict
        How they were chosen: "reason" in words, and "table", one dict per candidate with its out-of-sample error. The reason is
        also in ``history_[0]["tuning"]``. After a choice from few rows, "growth" is how many times larger errors of new rows
        are than left-out errors; intervals are learnt from residuals that are as much larger.
    plan_ : Plan
        How the kernel matrix was held, why, and what it cost by estimate; for an approximation also its rank and the share of
        the trace that it leaves out.
    kernel_ : Kernel
        The kernel of the first unit, with gamma resolved.
    n_support_ : int
        Number of training rows kept for prediction.{SHARED_ATTRIBUTES}"""

STONET_PARAMETERS = f"""
    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, default=(5,)
        Number of units of every hidden layer; the first is a layer of penalised linear regressions.
    activation : {{"softplus", "tanh", "sigmoid", "relu", "gelu", "identity"}}, default="softplus"
        Activation function of the hidden layers. The last three lie outside the paper's Assumption 1.
    kernel : None, str or callable, default=None
        With None the first layer is linear in X. Otherwise it is linear in the rows of the kernel matrix (the variant of the
        paper's discussion: the Gram matrix as the input of a StoNet); kernels are named as in :class:`MultiTargetSVR`.
    gamma : float or {{"scale", "auto", "median"}}, default="scale"
        Inverse squared width of the kernel.{SHARED_PARAMETERS}
    Notes
    -----
    A linear first layer carries ten times the noise of the layers above it, so that the residual moves the first layer first.

    Attributes
    ----------{SHARED_ATTRIBUTES}"""


def classifier(sections: str) -> str:
    """The sections of a classifier: with what its regressor has not, and without what it alone has."""
    parameters, attributes = sections.replace(TARGET_TRANSFORM, "").split("    Notes\n", maxsplit=1)
    return f"{parameters.rstrip()}\n{CLASSIFIER_PARAMETERS}\n    Notes\n{attributes}{CLASSIFIER_ATTRIBUTES}"


SEARCH_PARAMETERS = """
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
