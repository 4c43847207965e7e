"""Annotation: ask people whether attention reads like an explanation."""

from exegete.plugins import Entry, Plugin

PLUGIN = Plugin(
    ours=True,
    commands={"annotate": Entry("exegete.wings.annotation.command:annotate", "sheets for people, and their answers")},
)
