"""All papers by name: each is a built-in study and the numbers that its authors printed."""

from exegete.base.names import Catalogue, Entry

PAPERS = Catalogue(
    "paper",
    {
        "neely_schouten_2020": Entry(
            "exegete.studies.published:published",
            "Sparse attention is consistent with feature importance: tables 1 and 2",
        )
    },
)
