"""The explorer: take hold of attention and see whether the prediction follows. The server imports no torch."""

from exegete.plugins import Entry, Plugin

PLUGIN = Plugin(
    ours=True,
    commands={"serve": Entry("exegete.wings.explorer.command:serve_command", "the explorer")},
)
