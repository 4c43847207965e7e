"""What calibration found, as tables of a page, from `results/calibration`."""

from collections import Counter
from collections.abc import Iterator

import polars as pl

from exegete.wings.calibration.count import BETWEEN, excludes, settles
from tools.pages.place import ROOT
from tools.pages.table import markdown_table

KEPT = ROOT / "results" / "calibration"
AUDITS = {"quick": "quick", "default": "default", "hf quick": "Hugging Face, quick", "hf": "Hugging Face"}
GRADES = {"strong": ("strong",), "partly": ("partly",), "no": ("flat", "hardly", "unread")}
COPIES = ("flat copy", "graded copy")
ALSO = ("faithful with an idle word", "redundant pair", "partly ordered", "backward cues", "one class only")
SINKS = ("", " with a special sink", " with a null key", " with an idle word")


def calibration(which: str) -> str:
    """Right, open and wrong by setting; or answers of families with sinks and near an edge, or of wired BERTs."""
    if which == "wired":
        return markdown_table(("wired BERT", "answer", "Γ", "texts", "wrong"), _wired())
    draws = pl.read_csv(KEPT / "draws.csv", infer_schema_length=None).filter(pl.col("truth") != BETWEEN)
    if which == "settings":
        return markdown_table(("truth", "setting", "audits", "right", "open", "wrong"), _by_setting(draws))
    return markdown_table(("family", *AUDITS.values()), _by_family(draws))


def _by_setting(draws: pl.DataFrame) -> Iterator[tuple[str, ...]]:
    for grade, truths in GRADES.items():
        for audit, label in AUDITS.items():
            own = draws.filter(pl.col("audit") == audit, pl.col("truth").is_in(truths))
            pairs = own.select("answer", "truth").rows()
            right, wrong = sum(settles(*pair) for pair in pairs), sum(excludes(*pair) for pair in pairs)
            share = f"{right} ({100 * right / len(pairs):.0f} %)"
            yield grade, label, str(len(pairs)), share, str(len(pairs) - right - wrong), str(wrong)


def _by_family(draws: pl.DataFrame) -> Iterator[tuple[str, ...]]:
    for family in (*(f"{copy}{sink}" for copy in COPIES for sink in SINKS), *ALSO):
        yield (
            family,
            *(_answers(draws.filter(pl.col("family") == family, pl.col("audit") == audit)) for audit in AUDITS),
        )


def _wired() -> Iterator[tuple[str, ...]]:
    for row in pl.read_csv(KEPT / "wired.csv").iter_rows(named=True):
        ends = "–" if row["ranks_least"] is None else f"{row['ranks_least']:.2f} to {row['ranks_most']:.2f}"
        yield row["truth"], row["answer"], ends, str(row["texts"]), "yes" if row["wrong"] else "no"


def _answers(draws: pl.DataFrame) -> str:
    return ", ".join(f"{count} {answer}" for answer, count in Counter(draws["answer"].to_list()).most_common())
