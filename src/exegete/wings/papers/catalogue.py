"""All papers by name: each has printed numbers, and a file that says which of our studies answers to them."""

from exegete.plugins import Catalogue, Entry

_PLACE = "exegete.wings.papers.paper:load_paper"
PAPERS = Catalogue(
    "paper",
    {
        "jain_wallace_2019": Entry(
            _PLACE, "Attention is not explanation: attention against gradients and leave-one-out"
        ),
        "serrano_smith_2019": Entry(_PLACE, "Is attention interpretable? Decisions that flip when weights are erased"),
        "wiegreffe_pinter_2019": Entry(_PLACE, "Attention is not not explanation: four tests of attention"),
        "vashishth_2019": Entry(_PLACE, "Attention interpretability across NLP tasks: where attention is needed"),
        "neely_schouten_2020": Entry(_PLACE, "Sparse attention is consistent with feature importance: tables 1 and 2"),
        "bastings_filippova_2020": Entry(_PLACE, "The elephant in the interpretability room: saliency, not attention"),
        "meister_2021": Entry(_PLACE, "Is sparse attention more interpretable? Words, states and adversaries"),
    },
)
