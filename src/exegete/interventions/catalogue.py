"""All interventions by name."""

from exegete.base.names import Catalogue, Entry

INTERVENTIONS = Catalogue(
    "intervention",
    {"detach": Entry("exegete.interventions.detach:Detach", "the same weights, treated as constants by gradients")},
)
