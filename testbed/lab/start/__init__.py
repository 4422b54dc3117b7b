"""The steps of `up`: what is refused, the run's folder, the calibration of links."""
