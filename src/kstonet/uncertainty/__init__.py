"""Prediction uncertainty: moments through the layers, out-of-sample residuals, distributions, conformal calibration."""
