"""What the docstrings of the four estimators share."""

PARAMETERS = """
    activation : {"tanh", "softplus", "sigmoid", "relu", "gelu", "identity"}, default="tanh"
    solver : {"sgd", "momentum", "adam"}, default="adam"
        Minibatch gradient descent, plain, with momentum, or Adam. The paper uses the first two for most comparisons.
    learning_rate : float, default=0.005
        Constant. The loss is the mean squared error (without ½) or the mean cross-entropy.
    momentum : float, default=0.9
        Decay of ``solver="momentum"``.
    batch_size : int or None, default=100
        Rows per step; None takes all rows.
    max_epochs : int, default=200
    alpha : float, default=0.0
        L1 penalty on all weights, not on biases: loss + alpha·Σ|w|, by proximal steps, so that weights become exactly
        zero. On a squared error this is twice the ``alpha`` of :class:`sklearn.linear_model.Lasso`, which halves its loss.
    dropout : float, default=0.0
        Probability with which an input of any layer is dropped in a training step.
    mc_samples : int, default=100
        With dropout, predictions average this many stochastic passes (MC dropout; Gal & Ghahramani, 2016). 0 predicts
        with the averaged network in one pass.
    tol, n_iter_no_change : default=None, 10
        Early stopping: stop when the validation loss (the training objective without validation rows) has not fallen by
        this fraction for so many epochs. With validation rows the parameters of the best epoch are kept.
    standardize : bool, default=True
        Standardise X (and the targets of a regression) inside.
    warm_start : bool, default=False
        Go on from the last fit, in its units, when fit is called again on data of the same shape (a kernel network: on
        the same X).
    dtype : {"float64", "float32"}, default="float64"
        Precision of training; float32 takes half the memory, and less time on large sets.
    callback : callable, optional
        Called with an :class:`~experiments.baselines.training.EpochState` after every epoch. An interrupt (Ctrl-C) ends
        training and keeps the model of the last whole epoch.
    random_state : int, RandomState or None
    verbose : int, default=0
        Print a line every ``verbose`` epochs; 0 is silent.
"""

ATTRIBUTES = """
    Attributes
    ----------
    history_ : list of dict
        One record per epoch, of all rows at its end and without dropout: ``loss`` (in the units trained in), ``penalty``,
        ``mse`` (in the units of y) or ``accuracy``, the same with ``val_`` for validation rows, and the ``seconds`` its
        gradient steps took.
    n_iter_ : int
        Epochs run.
    best_epoch_ : int
        Epoch whose parameters are in use: the last; after early stopping on validation rows or a divergence, the best.
    coefs_, intercepts_ : list of ndarray
        Weights (inputs, units) and biases of every layer, for standardised inputs and outputs if ``standardize``.
    n_features_in_, feature_names_in_
        As in scikit-learn.
"""
