"""A fitted model in a notebook: scikit-learn's diagram, and below it the score, the intervals and what was chosen."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from kstonet._progress import duration
from kstonet._words import counted, quoted, some
from kstonet.tables.encoding import TableEncoding
from kstonet.tables.frames import CATEGORY
from kstonet.target_map import NAMES
from kstonet.targets import ClassTargets
from kstonet.trained import TrainedNetwork
from kstonet.tuning.summary import chosen_words
from kstonet.uncertainty.calibration import IntervalCalibration, ProbabilityCalibration

#: Words for the residuals that intervals were learnt from.
INTERVALS = {
    None: "none",
    "crossfit": "from cross-fitted residuals",
    "local": "from cross-fitted residuals, with noise that depends on the features",
    "loo": "from leave-one-out residuals",  # in stored models only
    "training": "from residuals of the training rows; they may be too short",
}
LEVEL = 0.95
STYLE = (
    ".kstonet-fitted{font-size:.9em;margin:.5em 0 0;border-collapse:collapse;max-width:60em}"
    ".kstonet-fitted th,.kstonet-fitted td{text-align:left;vertical-align:top;padding:.15em .8em .15em 0;background:none}"
    ".kstonet-fitted th{font-weight:600;white-space:nowrap}"
)


def fitted_facts(trained: TrainedNetwork, n_rows: int | None = None) -> dict[str, str]:
    """What a trained network is worth knowing for at a glance, in words.

    Parameters
    ----------
    trained : TrainedNetwork
    n_rows : int, optional
        Rows it was trained on, where they are known.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet import KStoNetRegressor
    >>> from kstonet.estimators.display import fitted_facts
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> model = KStoNetRegressor(tuning="none", max_iter=3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> list(fitted_facts(model.trained_, 60))
    ['Training', 'Score', 'Intervals']
    """
    history = trained.history
    spent = sum(seconds for record in history for name, seconds in record.items() if name.startswith("seconds_"))
    rows = "" if n_rows is None else f"{counted(n_rows, 'row')}, "
    facts = {"Training": f"{rows}{counted(trained.n_iter, 'iteration')}, {duration(spent)}"}
    if history:
        facts["Score"] = _score(trained, history[-1])
    classes = isinstance(trained.targets, ClassTargets)
    facts["Probabilities" if classes else "Intervals"] = _uncertainty(trained)
    chosen = chosen_words(trained.chosen)
    if chosen:
        facts["Chosen"] = ", ".join(f"{name} {text}" for name, text in chosen.items())
    if trained.choice.get("reason"):
        facts["Reason"] = str(trained.choice["reason"])
    return facts


def _score(trained: TrainedNetwork, last: dict[str, Any]) -> str:
    """The score of the last iteration; of classes also that of the out-of-sample predictions that calibrate them."""
    name = "accuracy" if isinstance(trained.targets, ClassTargets) else "R²"
    found = {"the training rows": last.get("score"), "the validation rows": last.get("validation_score")}
    said = [f"{name} {value:.4g} on {rows}" for rows, value in found.items() if value is not None]
    calibration = trained.calibration
    if isinstance(calibration, ProbabilityCalibration) and calibration.out_of_sample is not None:
        logits, codes, *weights = calibration.out_of_sample
        right = (logits.argmax(axis=1) if logits.shape[1] > 1 else logits[:, 0] > 0) == codes
        said.append(f"{np.average(right, weights=weights[0] if weights else None):.4g} out of sample")
    return ", ".join(said)


def _uncertainty(trained: TrainedNetwork) -> str:
    """How wide intervals are where only the noise counts, and where they come from."""
    calibration, source = trained.calibration, INTERVALS.get(trained.residuals, str(trained.residuals))
    if isinstance(calibration, ProbabilityCalibration):
        return f"temperature {calibration.temperature:.3g}, {source}" if trained.has_intervals else "not calibrated"
    if not isinstance(calibration, IntervalCalibration):
        return "none: fitted with residuals=None, or interrupted"
    scale = np.asarray(trained._numeric().scaler.scale)
    deviations = np.sqrt(np.diagonal(calibration.noise.covariance)) * scale
    below, above = (np.broadcast_to(tail[0], scale.shape) for tail in calibration.factor.tails(np.array([LEVEL])))
    said = [f"−{low:.3g} to +{high:.3g}" for low, high in zip(below * deviations, above * deviations, strict=True)]
    own = trained._numeric().map
    where = "the prediction" if own is None else f"the {NAMES[own.kind]} of the prediction"
    return f"{LEVEL:.0%} intervals reach about {some(said, 3)} around {where}, more where rows are rare; {source}"


def missing_words(encoding: TableEncoding, names: list[str]) -> str | None:
    """How missing numbers are encoded; None where the model shows none.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.estimators.display import missing_words
    >>> from kstonet.tables import TableEncoding
    >>> missing_words(TableEncoding.of_numbers(np.array([[1.0, 2.0], [np.nan, 4.0]])), ["a", "b"])
    "numbers become the median; columns of their own say where 'a' is missing"
    """
    said = [name for j, name in enumerate(names) if (own := encoding.column(j, name)).indicated and own.kind != CATEGORY]
    if encoding.expected is None and not said:
        return None
    filled = "the median" if encoding.expected is None else "what the other columns make one expect"
    where = f"; columns of their own say where {quoted(said)} {'is' if len(said) == 1 else 'are'} missing" if said else ""
    return f"numbers become {filled}{where}"


def facts_table(facts: dict[str, str]) -> str:
    """Facts as an HTML table in the colours of the page around it.

    Examples
    --------
    >>> from kstonet.estimators.display import facts_table
    >>> "<td>R² &lt; 1</td>" in facts_table({"Score": "R² < 1"})
    True
    """
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts.items())
    return f'<style>{STYLE}</style><table class="kstonet-fitted">{rows}</table>'


class FittedDisplayMixin:
    """Adds the facts of a fitted model to what a notebook shows; the rest is scikit-learn's."""

    def _displayed(self) -> Any:
        """The network to describe: this one, or one inside."""
        return self

    def _facts_html(self) -> str:
        model = self._displayed()
        trained = getattr(model, "trained_", None)
        if not isinstance(trained, TrainedNetwork):
            return ""
        known, encoding = getattr(model, "_X_fit", None), getattr(model, "encoding_", None)
        facts = fitted_facts(trained, None if known is None else len(known))
        if isinstance(encoding, TableEncoding):
            names = [str(name) for name in getattr(model, "feature_names_in_", range(len(encoding.fill)))]
            facts |= {"Missing values": words} if (words := missing_words(encoding, names)) else {}
        return facts_table(facts)

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._facts_html()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle = dict(super()._repr_mimebundle_(**kwargs))  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._facts_html()
        return bundle
