"""The steps of `up`: preconditions, the run's folder, the calibration of links."""
