"""All importances by name: to add one, write its file and a line here, or call `IMPORTANCES.add` from your own code."""

from exegete.base.names import Catalogue, Entry

_ROOM = "exegete.importance"

IMPORTANCES = Catalogue(
    "importance",
    {
        "attention": Entry(f"{_ROOM}.attention:Attention", "the model's own attention weights"),
        "gradient": Entry(f"{_ROOM}.gradient:Gradient", "|gradient · embedding|, or the gradient's L1 or L2 norm"),
        "leave_one_out": Entry(f"{_ROOM}.leave_one_out:LeaveOneOut", "change of the prediction with the word deleted"),
        "random": Entry(f"{_ROOM}.random:Random", "keyed noise: the level that knowing nothing gives"),
    },
)
