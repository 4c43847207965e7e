"""The debate's map: every claim of the seven papers, its printed evidence, our verdict, and what turns it.

`claims.toml` says which printed numbers a claim rests on, and which row of which kept table is ours under the setting
that turns it. Verdicts are those of `exegete reproduce`, by the same rule; nothing is judged here again but claims that
come without a number, which the rule for claims in words judges.

    python -m tools.debate RESULTS OUT
"""

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, model_validator

from exegete.base.errors import UsageError
from exegete.base.names import validate
from exegete.wings.papers.catalogue import PAPERS
from exegete.wings.papers.paper import load_paper
from exegete.wings.papers.reproduce import compare
from exegete.wings.papers.rule import VERDICTS, Ours, Yardstick, judge_words

NONE = ("not run", "impossible", "not compared")  # verdicts without a number of ours
Where = dict[str, str | float]
SCHEMA = pl.Schema(
    dict.fromkeys(("paper", "name", "says", "evidence"), pl.String)
    | dict.fromkeys(("published", "ours", "low", "high"), pl.Float64)
    | {"verdict": pl.String, "numbers": pl.Int64}
    | dict.fromkeys((*VERDICTS, "turns", "turned"), pl.String)
    | dict.fromkeys(VERDICTS, pl.Int64)
    | dict.fromkeys(("turned_value", "turned_low", "turned_high"), pl.Float64)
    | {"page": pl.String}
)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Point(_Strict):
    """One row of a kept table, and the columns of a value and its interval."""

    label: str
    study: str
    table: str
    where: Where
    value: str = "mean"
    low: str = "low"
    high: str = "high"
    scale: float = 1.0

    def found(self, results: Path) -> Ours:
        """The number with its interval; another number of rows than one is an error."""
        path = results / self.study / f"{self.table}.csv"
        rows = [row for row in pl.read_csv(path, infer_schema=False).to_dicts() if fits(row, self.where)]
        if len(rows) != 1:
            raise UsageError(f"{path} has {len(rows)} rows with {self.where}: a point is exactly one")
        value, low, high = (self.scale * float(rows[0][name]) for name in (self.value, self.low, self.high))
        return Ours(value, low, high)


class Finding(Point):
    """What is known of a claim that comes without a printed number: the side of a reference where ours must lie."""

    sign: Literal["above", "below"]
    reference: float


class Claim(_Strict):
    """One claim, in a sentence, with what it rests on and what turns it."""

    paper: str
    name: str
    says: str
    turns: str
    page: str
    rows: Where = Field(default_factory=dict)
    shown: Where = Field(default_factory=dict)
    finding: Finding | None = None
    turned: Point | None = None

    @model_validator(mode="after")
    def _one_evidence(self) -> "Claim":
        if bool(self.rows) == (self.finding is not None):
            raise ValueError(f"claim '{self.name}' rests on either rows or a finding")
        return self


class Claims(_Strict):
    """All of them."""

    version: int
    claims: tuple[Claim, ...] = Field(min_length=1)


def load_claims() -> tuple[Claim, ...]:
    """The claims of `claims.toml`."""
    settings = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf8"))
    found: Claims = validate(Claims, settings, "file claims.toml")
    return found.claims


def fits(row: Mapping[str, Any], where: Where) -> bool:
    """Whether a row has all of these; * stands for anything, | between what means the same.

    >>> fits({"model": "ladder:share=0,size=8"}, {"model": "bilstm*|ladder:share=0*"})
    True
    """
    return all(any(fnmatchcase(row[key] or "", one) for one in str(value).split("|")) for key, value in where.items())


def the_map(results: Path) -> pl.DataFrame:
    """A row per claim, in the order of the papers."""
    lines = {name: compare(load_paper(name), tuple(load_paper(name).tables), results).frame for name in PAPERS}
    rows = [_row(claim, lines[claim.paper], results) for claim in load_claims()]
    return pl.DataFrame(rows, schema=SCHEMA)


def _row(claim: Claim, lines: pl.DataFrame, results: Path) -> dict[str, Any]:
    evidence = _judged(claim.finding, results) if claim.finding else _printed(claim, lines)
    turned = claim.turned.found(results) if claim.turned else None
    return {
        "paper": claim.paper, "name": claim.name, "says": claim.says, "turns": claim.turns, "page": claim.page,
        "turned": claim.turned.label if claim.turned else "",
        "turned_value": turned.value if turned else None, "turned_low": turned.low if turned else None,
        "turned_high": turned.high if turned else None,
    } | evidence  # fmt: skip


def _judged(finding: Finding, results: Path) -> dict[str, Any]:
    """A claim in words, judged by its rule: what is borne out is no more than a direction."""
    ours = finding.found(results)
    verdict, _ = judge_words(finding.sign, ours, Yardstick(reference=finding.reference))
    told = {"evidence": f"{finding.label}: {finding.sign} {finding.reference:.2g}", "verdict": verdict, "numbers": 1}
    return told | _numbers(ours) | {name: int(name == verdict) for name in VERDICTS}


def _printed(claim: Claim, lines: pl.DataFrame) -> dict[str, Any]:
    """All printed numbers by verdict, and the one that is told."""
    rows = [row for row in lines.to_dicts() if fits(row, claim.rows)]
    shown = [row for row in rows if fits(row, claim.shown)] if claim.shown else []
    if not rows or (claim.shown and len(shown) != 1):
        raise UsageError(
            f"claim '{claim.name}' has {len(rows)} printed numbers, of which {len(shown)} are told: one is"
        )
    counts = {name: sum(row["verdict"] == name for row in rows) for name in VERDICTS}
    return {"numbers": len(rows)} | counts | (_told(claim.paper, shown[0]) if shown else _untold(rows))


def _told(paper: str, row: Mapping[str, Any]) -> dict[str, Any]:
    named = load_paper(paper).parts("class").get(row["class"])
    class_ = (named.shows if named else "") or {"Overall": ""}.get(row["class"], f"class {row['class']}")
    of = ", ".join(filter(None, (row["table"], row["dataset"], class_ if row["class"] else "")))
    said = row["sign"] if row["published"] is None else ""
    told = {"evidence": f"{of}{f': {said}' if said else ''}", "published": row["published"], "verdict": row["verdict"]}
    return told | {name: row[name] for name in ("ours", "low", "high")}


def _untold(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"evidence": ", ".join(dict.fromkeys(row["table"] for row in rows)), "verdict": rows[0]["verdict"]}


def _numbers(ours: Ours) -> dict[str, float]:
    return {"ours": ours.value, "low": ours.low, "high": ours.high}
