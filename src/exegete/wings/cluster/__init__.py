"""Cluster: the same pieces of a study on a Ray cluster."""

from exegete.plugins import Entry, Plugin

PLUGIN = Plugin(
    ours=True,
    engines={"ray": Entry("exegete.wings.cluster.engine:RayEngine", "a Ray cluster, or a Ray of this machine")},
)
