"""From a float graph to an integer one: calibration, the choice of formats, and the rewrite."""
