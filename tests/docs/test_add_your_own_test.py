"""The how-to page's question and test, as they stand there, in a small audit of a made-up file."""

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest
import torch

from exegete.answers.audit import audit_study
from exegete.answers.gate import check_gate, named_tests
from exegete.answers.scorecard import Audit
from exegete.base.errors import UsageError
from exegete.experiments import tests as declarations
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.runs.engine.local import LocalEngine
from exegete.runs.study import load_study
from tests.docs.pages import ROOT
from tests.docs.plugin_runs import FEELING, review


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audit]:
    """The audit of the page's study, with a margin that nothing reaches."""
    folder = tmp_path_factory.mktemp("own_test")
    draw = random.Random(0)
    lines = [f"{review(label, draw)} .,{label}\n" for _ in range(150) for label in FEELING]
    (folder / "reviews.csv").write_text("".join(["review,sentiment\n", *lines]), encoding="utf8")
    (folder / "mine.toml").write_text("version = 9\n[spares_punctuation]\nmargin = 0.9\n")
    for name in ("punctuation.py", "punctuation.toml"):
        shutil.copy(ROOT / "examples" / name, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(declarations, "_ADDED", {})  # other audits of this process don't ask it
        study = load_study("punctuation.toml")
        yield audit_study(study, folder / "run", folder / "mine.toml", "sanity", engine=LocalEngine(1))


def test_one_declaration_makes_a_line_of_the_scorecard(found: Audit) -> None:
    (line,) = found.tests
    assert found.run is not None
    rows = pl.read_parquet(found.run / "tables" / "punctuation.parquet")
    assert line.name == "spares_punctuation"
    assert line.statistic == pytest.approx(rows["value"].mean())
    assert (line.n, line.threshold, found.criteria_version) == (len(rows), 0.9, 9)
    assert line.criterion.endswith("is above 0.9")
    assert line.votes


def test_it_decides_for_its_goal(found: Audit) -> None:
    (decision,) = found.decisions.values()
    assert decision.answer == {"fails": "no", "cannot tell": "undecided"}[found.tests[0].verdict]
    assert "spares punctuation" in decision.why


def test_the_findings_have_its_sentence(found: Audit) -> None:
    said = {"fails": "It puts weight on punctuation.", "cannot tell": "Whether it spares punctuation is not settled."}
    assert said[found.tests[0].verdict] in " ".join(found.findings)
    assert "whether it spares punctuation" not in found.untested[-1]


def test_its_criterion_is_kept_and_a_build_can_stop_at_it(found: Audit) -> None:
    assert found.run is not None
    assert json.loads((found.run / "criteria.json").read_text())["spares_punctuation"]["margin"] == 0.9
    assert named_tests("spares_punctuation") == ("spares_punctuation",)
    with pytest.raises(UsageError, match="does not ask 'used'"):
        check_gate(found, ["used"])


def test_rows_by_hand(found: Audit) -> None:
    example = SimpleNamespace(id=7, words=("a", ",", "film", "."))
    subject = SimpleNamespace(
        examples=(example,), scores={"attention": torch.tensor([[0.4, 0.1, 0.3, 0.2, torch.nan]])}
    )
    rows = EXPERIMENTS.make("punctuation").rows(subject)
    assert rows["value"].to_list() == pytest.approx([0.5 - 0.3])


def test_a_name_that_is_taken_is_refused(found: Audit) -> None:
    own = declarations.all_tests()["spares_punctuation"]
    with pytest.raises(UsageError, match="already a test 'used'"):
        declarations.add_test(replace(own, name="used"))
