"""All experiments by name."""

from exegete.base.names import Catalogue, Entry

EXPERIMENTS = Catalogue(
    "experiment",
    {
        "agreement": Entry(
            "exegete.experiments.agreement:Agreement",
            "do two importances rank words alike? (Jain & Wallace 2019, Neely & Schouten 2020)",
        ),
        "faithfulness": Entry(
            "exegete.experiments.faithfulness:Faithfulness",
            "which importance finds the words that a prediction hangs on? (DeYoung et al. 2020)",
        ),
        "sanity": Entry(
            "exegete.experiments.sanity:Sanity",
            "do scores depend on what the model has learnt? (Adebayo et al. 2018, Kindermans et al. 2017)",
        ),
        "plausibility": Entry(
            "exegete.experiments.plausibility:Plausibility",
            "do importances mark the words that people marked? (DeYoung et al. 2020)",
        ),
        "known_answer": Entry(
            "exegete.experiments.known_answer:KnownAnswer",
            "do importances find words that were planted to decide the class? (Bastings et al. 2021)",
        ),
    },
)
