"""Measured silicon: operators of a folder of measurements, judged and fitted to."""
