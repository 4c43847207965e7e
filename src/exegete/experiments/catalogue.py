"""All experiments by name."""

from importlib.util import find_spec

from exegete.base.catalogue import Catalogue, Entry

EXPERIMENTS = Catalogue(
    "experiment",
    {  # in the order of the scorecard; what the audit asks nothing of comes last
        "mediation": Entry(
            "exegete.experiments.mediation.experiment:Mediation",
            "does a word act through its own weight, and do weights order words by what they do?",
        ),
        "agreement": Entry(
            "exegete.experiments.agreement.experiment:Agreement",
            "do two importances rank words alike? (Jain & Wallace 2019, Neely & Schouten 2020)",
        ),
        "faithfulness": Entry(
            "exegete.experiments.faithfulness.experiment:Faithfulness",
            "which importance finds the words that a prediction hangs on? (DeYoung et al. 2020)",
        ),
        "plausibility": Entry(
            "exegete.experiments.plausibility.experiment:Plausibility",
            "do importances mark the words that people marked? (DeYoung et al. 2020)",
        ),
        "known_answer": Entry(
            "exegete.experiments.known_answer.experiment:KnownAnswer",
            "do importances find words that were planted to decide the class? (Bastings et al. 2021)",
        ),
        "supporting_facts": Entry(
            "exegete.experiments.supporting_facts.experiment:SupportingFacts",
            "does an importance find the sentences that answer the question? (Weston et al. 2015)",
        ),
        "permutation": Entry(
            "exegete.experiments.permutation.experiment:Permutation",
            "does the prediction care which word carries which weight? (Jain & Wallace 2019)",
        ),
        "importance_sets": Entry(
            "exegete.experiments.importance_sets.experiment:ImportanceSets",
            "how many keys must go, in whose order, until the decision flips? (Serrano & Smith 2019)",
        ),
        "adversary_search": Entry(
            "exegete.experiments.adversary_search.experiment:AdversarySearch",
            "can other weights give the same prediction? (Jain & Wallace 2019)",
        ),
        "necessity": Entry(
            "exegete.experiments.necessity.experiment:Necessity",
            "does the model need its attention? (Wiegreffe & Pinter 2019, Vashishth et al. 2019)",
        ),
        "seed_stability": Entry(
            "exegete.experiments.seed_stability.experiment:SeedStability",
            "do models that differ by seed attend to the same words? (Wiegreffe & Pinter 2019)",
        ),
        "diagnostic": Entry(
            "exegete.experiments.diagnostic.experiment:Diagnostic",
            "do the weights help a model that sees single words? (Wiegreffe & Pinter 2019)",
        ),
        "adversary_training": Entry(
            "exegete.experiments.adversary_training.experiment:AdversaryTraining",
            "can a model learn to predict the same with other attention? (Wiegreffe & Pinter 2019)",
        ),
        "multiverse": Entry(
            "exegete.experiments.multiverse.experiment:Multiverse",
            "how far does agreement hang on choices that could be made otherwise? (Simonsohn et al. 2020)",
        ),
        "sanity": Entry(
            "exegete.experiments.sanity.experiment:Sanity",
            "do scores depend on what the model has learnt? (Adebayo et al. 2018, Kindermans et al. 2017)",
        ),
        "reliance": Entry(
            "exegete.experiments.reliance.experiment:Reliance",
            "is a model that needs its attention harder to fake? (Neely & Schouten 2020)",
        ),
        "dispersion": Entry(
            "exegete.experiments.dispersion.experiment:Dispersion",
            "is sparse attention over states a sparse choice of words? (Meister et al. 2021)",
        ),
        "single_weight": Entry(
            "exegete.experiments.single_weight.experiment:SingleWeight",
            "does the highest weight matter more to the output than another? (Serrano & Smith 2019)",
        ),
        "decision_flips": Entry(
            "exegete.experiments.decision_flips.experiment:DecisionFlips",
            "does removing the highest weight, or another, flip the decision? (Serrano & Smith 2019)",
        ),
        "deception": Entry(
            "exegete.experiments.deception.experiment:DeceptionExperiment",
            "can attention hide the words that decide, and who finds them all the same? (Pruthi et al. 2020)",
        ),
        "gating": Entry(
            "exegete.experiments.gating.experiment:Gating",
            "do gates that don't compete do the same as attention? (Vashishth et al. 2019, proposition 4.1)",
        ),
        "layers": Entry(
            "exegete.experiments.layers.experiment:Layers",
            "what is left when layer after layer attends to the wrong words? (Vashishth et al. 2019)",
        ),
        "heads": Entry(
            "exegete.experiments.heads.experiment:Heads",
            "which heads does a prediction hang on, and where do they look? (Michel et al. 2019)",
        ),
        "knockout": Entry(
            "exegete.experiments.knockout.experiment:Knockout",
            "in which layers does a word reach the prediction? (Geva et al. 2023)",
        ),
        "readings": Entry(
            "exegete.experiments.readings.experiment:Readings",
            "which way of reading a transformer's attention orders words by what they do, through what is read?",
        ),
        "alignment": Entry(
            "exegete.experiments.alignment.experiment:Alignment",
            "does attention or saliency say which word a word translates? (Ding et al. 2019)",
        ),
    },
)


def module_beside(experiment: str, file: str) -> str | None:
    """A module in the folder of an experiment of ours; None where there is none, as for those of plugins."""
    place = EXPERIMENTS[experiment].place
    if not isinstance(place, str):
        return None
    module = f"{place.partition(':')[0].rpartition('.')[0]}.{file}"
    return module if find_spec(module) else None
