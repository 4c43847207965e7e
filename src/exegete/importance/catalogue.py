"""All importances by name: to add one, write its file and a line here, or call `IMPORTANCES.add` from your own code."""

from exegete.base.names import Catalogue, Entry

IMPORTANCES = Catalogue(
    "importance",
    {
        "attention": Entry("exegete.importance.attention:Attention", "the model's own attention weights"),
        "gradient": Entry(
            "exegete.importance.gradient:Gradient", "|gradient · embedding|, or the gradient's L1 or L2 norm"
        ),
        "leave_one_out": Entry(
            "exegete.importance.leave_one_out:LeaveOneOut", "change of the prediction with the word deleted"
        ),
        "random": Entry("exegete.importance.random:Random", "keyed noise: the level that knowing nothing gives"),
    },
)
