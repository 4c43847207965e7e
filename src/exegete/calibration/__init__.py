"""Calibration: audit the audit on models whose truth is known."""
