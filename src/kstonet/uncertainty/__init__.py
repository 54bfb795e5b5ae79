"""Prediction uncertainty: moments through the layers, honest residuals, distributions, conformal calibration."""
