"""Criteria: when each test holds, as its declaration says, or as a user's own file says over it.

A verdict compares an interval with a margin: it holds above the margin, fails below it, and else can't tell; how sure
it must be is said in `exegete.answers.rules`. The margins are ours. To change some, write them into a TOML file with a
version of its own, and pass it with `--criteria`.
"""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model, field_validator, model_validator

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.files import read_json
from exegete.base.names import validate
from exegete.experiments.common.test import Test
from exegete.experiments.tests import all_tests

# Fingerprints of what the built-in declarations decided: one that changes needs another version (a test sees to it).
VERSIONS = {5: "453316a3a7ff64f4", 6: "76f9a6c74458525d", 7: "6612e72b733cea29"}
VERSION = max(VERSIONS)
SEEDS_FOR_A_RECIPE = 5  # fewer don't settle a claim about a way of training


class Criterion(BaseModel):
    """One test's question, margin, further edge and source."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    question: str
    margin: float
    partly: float | None = None  # a test that fails, but lies above this, fails only partly
    criterion: str  # {margin} stands for the margin
    paper: str

    @field_validator("criterion")
    @classmethod
    def _names_only_the_margin(cls, text: str) -> str:
        try:
            text.format(margin=0.0)
        except (KeyError, IndexError, ValueError):
            raise ValueError("a criterion may name {margin} in braces, and nothing else") from None
        return text

    @model_validator(mode="after")
    def _partly_is_less(self) -> "Criterion":
        if self.partly is not None and self.partly >= self.margin:
            raise ValueError(f"partly is {self.partly:g}, and must be less than the margin, {self.margin:g}: name both")
        return self

    def __str__(self) -> str:
        return self.criterion.format(margin=self.margin)


class Criteria(BaseModel):
    """All criteria by test, with the version that a result must quote; `_schema` has a field for every test."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    version: int

    def __getitem__(self, test: str) -> Criterion:
        found: Criterion = getattr(self, test)
        return found


def load_criteria(path: Path | None = None) -> Criteria:
    """The built-in criteria, or the user's own: what a file doesn't name stays as it is, but for the version."""
    given = {"version": VERSION} if path is None else _read(path)
    if "version" not in given:
        raise UsageError(f"{path} needs a `version` of its own (a number): verdicts quote it")
    return _over(given, "criteria")


def criteria_of_run(path: Path) -> Criteria:
    """Those that a run was judged by; tests that are younger than the run have ours."""
    return _over({"version": VERSION} | read_json(path, "criteria"), f"criteria in {path}")


def _over(given: dict[str, Any], owner: str) -> Criteria:
    """What is said of each test, over its declaration."""
    ours = {name: _ours(test) for name, test in all_tests().items()}
    merged = ours | {name: _joined(ours.get(name), said) for name, said in given.items()}
    schema = create_model("Criteria", __base__=Criteria, **dict.fromkeys(ours, (Criterion, ...)))  # type: ignore[call-overload]
    criteria: Criteria = validate(schema, merged, owner)
    return criteria


def _ours(test: Test) -> dict[str, Any]:
    own = {name: getattr(test, name) for name in ("question", "margin", "partly", "criterion")}
    return own | {"paper": test.source}


def _joined(ours: Any, said: Any) -> Any:
    return ours | said if isinstance(ours, dict) and isinstance(said, dict) else said


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf8"))
    except FileNotFoundError:
        raise ExegeteError(f"there is no criteria file {path}") from None
    except OSError as error:
        raise ExegeteError(f"{path} can't be read as criteria ({error.strerror}): give a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
