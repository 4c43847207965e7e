"""The figure of the answer: every method by specification, the best single order above, the edges between grades."""

import json

import polars as pl

from exegete.experiments.common.margins import grade_edges, show_margins
from exegete.experiments.mediation.figure import BEST, order_table, orders
from exegete.experiments.tests import all_tests

METHODS = {"attention": 0.6, "lrp": 0.8, "gradient:norm=l2": 0.7, "random": 0.9}  # where noise has luck, it stays last


def summary(*models: str) -> pl.DataFrame:
    """Γ by method, in two specifications that decide, one that informs, and one in which most texts are void."""
    specifications = [
        ("delete", "alone", "log-odds", 0.1),
        ("resample", "company", "log-odds", 0.2),
        ("resample", "alone", "probability", 0.1),
        ("delete", "company", "probability", 0.6),
    ]
    rows = [
        {"task": "t", "model": model, "split": split, "removal": removal, "company": company, "scale": scale,
         "method": method, "void": void, "ranks": gamma - void, "ceiling": 0.95 if method == "attention" else None}
        for model in models for split in ("dev", "test") for removal, company, scale, void in specifications
        for method, gamma in METHODS.items()
    ]  # fmt: skip
    return pl.DataFrame(rows)


def test_methods_stand_by_their_mean_between_the_best_order_and_noise() -> None:
    table = order_table(summary("bilstm"))
    assert table["row"].unique(maintain_order=True).to_list() == [BEST, "LRP", "gradient", "attention", "random"]
    own = table.filter(pl.col("row") == "attention")
    assert own.select("removed", "gamma").rows() == [("words deleted", 0.5), ("words resampled", 0.6 - 0.2)]
    assert table.filter(pl.col("row") == BEST)["gamma"].to_list() == [0.95, 0.95]


def test_a_run_of_before_has_no_best_order() -> None:
    table = order_table(summary("bilstm").drop("ceiling"))
    assert table["row"].unique(maintain_order=True).to_list() == ["LRP", "gradient", "attention", "random"]


def test_of_several_models_only_attention_is_drawn() -> None:
    table = order_table(summary("bilstm", "cnn"))
    assert table.group_by("row").agg(pl.col("kind").unique().sort()).sort("row").rows() == [
        ("bilstm: tanh, softmax", ["attention", "bound"]), ("cnn: tanh, softmax", ["attention", "bound"])
    ]  # fmt: skip
    assert "lrp" not in json.dumps(orders(summary("bilstm", "cnn")).to_dict(validate=False)).lower()


def test_edges_are_those_of_the_run() -> None:
    ranks = all_tests()["ranks"]
    assert grade_edges("ranks") == (ranks.margin, ranks.partly)
    with show_margins({"ranks": 0.6, "reads": 0.3}, {"ranks": 0.4, "reads": None}):
        assert grade_edges("ranks") == (0.6, 0.4)
        assert grade_edges("reads") == (0.3,)
        drawn = json.dumps(orders(summary("bilstm")).to_dict(validate=False))
    assert '"edge": 0.6' in drawn
    assert '"edge": 0.4' in drawn


def test_without_texts_in_which_a_word_matters_it_says_so() -> None:
    void = summary("bilstm").with_columns(void=pl.lit(1.0))
    assert "nothing to show" in json.dumps(orders(void).to_dict(validate=False))
