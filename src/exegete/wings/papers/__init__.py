"""Papers: published numbers beside ours."""

from exegete.plugins import Entry, Plugin

PLUGIN = Plugin(
    ours=True,
    commands={"reproduce": Entry("exegete.wings.papers.command:reproduce", "a paper's printed numbers beside ours")},
    catalogues={"papers": Entry("exegete.wings.papers.catalogue:PAPERS", "papers whose numbers are compared")},
    sections={"published": Entry("exegete.wings.papers.comparison:comparison", "beside the published numbers")},
)
