"""Files of format version 1, in which a network was a set of attributes of its estimator, become a trained network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kstonet._records import storable
from kstonet.storage.errors import ModelFileError
from kstonet.storage.records import check_record, expect
from kstonet.targets import ClassTargets, NumericTargets
from kstonet.trained import TrainedNetwork
from kstonet.uncertainty.calibration import IntervalCalibration, ProbabilityCalibration

KEPT = ("n_features_in_", "feature_names_in_", "_sklearn_output_config")  # attributes that are so still

#: Every attribute that version 1 knew, and whether it was always there.
ATTRIBUTES = {
    **dict.fromkeys(("history_", "n_iter_", "_n_features_out", "_x_scaler", "_expansion", "_uppers"), True),
    **dict.fromkeys(("_uncertainty", "tuned_", "tuning_", "kernel_", "n_support_", "_kernel"), False),
    **dict.fromkeys(("_y_scaler", "_single_target", "_noise_model", "_factor", "_honest"), False),
    **dict.fromkeys(("classes_", "calibration_temperature_", "logit_variance_scale_"), False),
}


@storable()
@dataclass(frozen=True)
class Network:
    """The layers of one iterate; None stands for the first."""

    layers: tuple[Any, ...]


def upgraded(attributes: dict[str, Any], residuals: str | None) -> dict[str, Any]:
    """The attributes of the present version, from those of version 1 and the parameter ``residuals`` of the estimator."""
    given = {name: value for name, value in attributes.items() if name not in KEPT}
    unlike = given.keys() - ATTRIBUTES.keys() | {name for name, always in ATTRIBUTES.items() if always and name not in given}
    if unlike:
        raise ModelFileError(f"missing or unknown attributes: {', '.join(sorted(unlike))}. Update kstonet.")
    uppers = given["_uppers"]
    whole = isinstance(uppers, list) and all(isinstance(network, Network) for network in uppers)
    above = whole and all(network.layers and network.layers[0] is None for network in uppers)
    expect(above, "a network has no layers above the first")
    if "classes_" in given:
        targets: Any = ClassTargets(given["classes_"])
        calibration: Any = ProbabilityCalibration(
            given.get("calibration_temperature_", 1.0), given.get("logit_variance_scale_", 1.0), given.get("_honest")
        )
    else:
        expect("_y_scaler" in given and "_single_target" in given, "it has neither classes nor a scale of its targets")
        targets = NumericTargets(given["_y_scaler"], given["_single_target"])
        known = "_noise_model" in given and "_factor" in given
        calibration = IntervalCalibration(given["_noise_model"], given["_factor"], given.get("_honest")) if known else None
    trained = TrainedNetwork(
        scaler=given["_x_scaler"],
        targets=targets,
        expansion=given["_expansion"],
        uppers=tuple(network.layers[1:] for network in uppers),
        n_iter=given["n_iter_"],
        history=given["history_"],
        residuals=residuals,
        uncertainty=given.get("_uncertainty"),
        calibration=calibration,
        chosen=given.get("tuned_", {}),
        choice=given.get("tuning_", {}),
    )
    for record in (targets, calibration, trained):  # those of the file have been checked, these are new
        if record is not None:
            check_record(record)
    return {name: value for name, value in attributes.items() if name in KEPT} | {"trained_": trained}
