"""Calibration: audit the audit on models whose truth is known."""

from exegete.plugins import Entry, Plugin

PLUGIN = Plugin(
    ours=True,
    commands={
        "calibrate": Entry("exegete.wings.calibration.command:calibrate_command", "the audit of models of known truth")
    },
)
