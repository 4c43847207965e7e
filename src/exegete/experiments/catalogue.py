"""All experiments by name."""

from exegete.base.names import Catalogue, Entry

EXPERIMENTS = Catalogue(
    "experiment",
    {
        "agreement": Entry(
            "exegete.experiments.agreement:Agreement",
            "do two importances rank words alike? (Jain & Wallace 2019, Neely & Schouten 2020)",
        ),
    },
)
