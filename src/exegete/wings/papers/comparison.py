"""Comparison: what a paper printed beside what we found, quantity by quantity."""

from typing import Any, NamedTuple

import polars as pl

from exegete.plugins import ALL, Agreement, Column, Study, Table, interval, number, parse, text
from exegete.wings.papers.published import read_published


class _Ours(NamedTuple):
    """Where a printed quantity stands in our summary."""

    second: str
    measure: str
    k: str
    column: str = "mean"


QUANTITIES = {
    "tau_grad": _Ours("gradient", "tau", ALL),
    "tau_loo": _Ours("leave_one_out", "tau", ALL),
    "sigfrac_grad": _Ours("gradient", "tau", ALL, "significant"),
    "sigfrac_loo": _Ours("leave_one_out", "tau", ALL, "significant"),
    "topk_tau_grad_kavg": _Ours("gradient", "legacy", "average"),
    "topk_tau_loo_kavg": _Ours("leave_one_out", "legacy", "average"),
    "topk_tau_grad_knonzero": _Ours("gradient", "legacy", "nonzeros"),
    "topk_tau_loo_knonzero": _Ours("leave_one_out", "legacy", "nonzeros"),
}
ATTENTION = {"tanh": "tanh", "sdp": "dot"}
INDEX = ["table", "dataset", "attention", "projection", "quantity"]


def comparison(study: Study, summary: pl.DataFrame) -> Table | None:
    """Published by class, ours by class and overall, with chance; None if nothing was published or matches."""
    asked = study.built_experiments().get("agreement")
    if study.paper is None or not isinstance(asked, Agreement) or asked.by != "predicted":
        return None
    printed = read_published(study.paper).pivot("class", index=INDEX, values="mean", maintain_order=True)
    cells = summary.select("task", "model").unique(maintain_order=True).rows(named=True)
    rows = [
        row | {"model": cell["model"]} | found
        for row in printed.iter_rows(named=True)
        for cell in cells
        if _same(cell, row) and (found := _ours(row, cell, summary)) is not None
    ]
    if not rows:
        return None
    frame = pl.DataFrame(rows, infer_schema_length=None).rename({"0": "published_0", "1": "published_1"})
    caption = (
        "Ours: mean over texts and seeds; the interval and chance are those of all texts. "
        "Class 0 of a paper need not be ours."
    )
    return Table("Published and ours", frame, caption, _columns(frame))


def _ours(row: dict[str, Any], cell: dict[str, str], summary: pl.DataFrame) -> dict[str, Any] | None:
    """Our numbers for one printed row: by class, all, interval, chance, and Fagin's where ours is the legacy one."""
    where = QUANTITIES[row["quantity"]]
    mine = summary.filter(
        pl.col("task") == cell["task"], pl.col("model") == cell["model"], pl.col("first") == "attention",
        pl.col("second") == where.second, pl.col("k") == where.k,
    )  # fmt: skip
    chosen = mine.filter(pl.col("measure") == where.measure)
    if chosen.is_empty():
        return None
    every = chosen.row(by_predicate=pl.col("class") == ALL, named=True)
    classes = chosen.filter(pl.col("class") != ALL).sort("class")
    found = {f"ours_{label}": value for label, value in zip(classes["class"], classes[where.column], strict=True)}
    found |= {"ours_all": every[where.column], "seeds": every["seeds"]}
    is_mean = where.column == "mean"
    found |= {name: every[name] if is_mean else None for name in ("low", "high", "chance")}
    fair = mine.filter((pl.col("measure") == "fagin") & (pl.col("class") == ALL))
    known = where.measure == "legacy" and not fair.is_empty()
    return found | {
        "fagin": fair["mean"].item() if known else None,
        "fagin_chance": fair["chance"].item() if known else None,
    }


def _same(cell: dict[str, str], row: dict[str, Any]) -> bool:
    """Whether one of our models on one of our tasks is the configuration of a printed row."""
    model = parse(cell["model"])
    settings = {"attention": "tanh", "projection": "softmax"} | model.settings
    return (
        parse(cell["task"]).name == row["dataset"].lower()
        and model.name == "bilstm"
        and settings["attention"] == ATTENTION[row["attention"]]
        and settings["projection"] == row["projection"]
    )


def _columns(frame: pl.DataFrame) -> list[Column]:
    ours = [name for name in frame.columns if name.startswith("ours_") and name != "ours_all"]
    return [
        text("table"), text("dataset"), text("attention"), text("projection"), text("quantity"),
        number("published_0", "published: class 0"), number("published_1", "published: class 1"),
        *(number(name, f"ours: class {name.removeprefix('ours_')}") for name in ours),
        number("ours_all", "ours: all"), interval("low", "high"), number("chance"),
        number("fagin", "ours: Fagin, same k"), number("fagin_chance", "its chance"),
    ]  # fmt: skip
