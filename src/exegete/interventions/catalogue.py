"""All interventions by name."""

from exegete.base.catalogue import Catalogue, Entry

INTERVENTIONS = Catalogue(
    "intervention",
    {
        "uniform": Entry("exegete.interventions.uniform:Uniform", "the same weight for every word"),
        "random": Entry("exegete.interventions.random:Random", "random weights, drawn anew in every epoch or once"),
        "permute": Entry("exegete.interventions.permute:Permute", "the same weights on other words"),
        "remove": Entry("exegete.interventions.remove:Remove", "without the highest, the lowest or random weights"),
        "keep": Entry("exegete.interventions.keep:Keep", "only the highest weights"),
        "silence": Entry("exegete.interventions.silence:Silence", "no weight at all: a head that gives nothing"),
        "impose": Entry("exegete.interventions.impose:Impose", "weights from a file or another model, by text"),
        "adversarial": Entry(
            "exegete.interventions.adversarial:Adversarial", "other weights, found by search, for the same prediction"
        ),
        "detach": Entry("exegete.interventions.detach:Detach", "the same weights, treated as constants by gradients"),
    },
)
