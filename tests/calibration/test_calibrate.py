"""Calibration: rates by hand on made-up verdicts, and whole calibrations of made-up runs whose answer is plain."""

import json
import math
import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from typer.testing import CliRunner

from exegete.audits.criteria import Criteria, load_criteria
from exegete.audits.judge import judge as judged
from exegete.base.errors import ExegeteError, UsageError
from exegete.calibration.calibrate import SET, STUDIES, calibrate, keep, rung_of, verdicts_of, votes_file
from exegete.calibration.figure import calibration, shares
from exegete.calibration.votes import ALARM, newcombe, tally, votes
from exegete.cli import app
from exegete.experiments.tests import built_in
from exegete.measures.proportions import clopper_pearson
from exegete.page.theme import to_svg
from exegete.runs.keys import key_of
from exegete.runs.study import Study, load_study
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.small import small_model, small_task

TASK = "rotten_tomatoes"
LADDER = {0.0: "ladder:share=0", 1.0: "ladder:share=1"}
MOVED = {0.0: 0.0, 1.0: 0.3}  # what permuted weights change
SCHEMA = ["rung", "seeds", "texts", "test", "recipe", "verdict"]


def verdicts(*lines: tuple[Any, ...]) -> pl.DataFrame:
    """Lines of rung, test, verdict and how often; seeds and texts where they differ."""
    rows = [
        (rung, seeds, texts, test, recipe, said)
        for rung, test, said, often, seeds, texts, recipe in (
            line + (1, "all", False)[len(line) - 4 :] for line in lines
        )
        for _ in range(often)
    ]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def ends(power: int, n: int, alarms: int, m: int, null: int = 0, of: int = 20) -> pl.DataFrame:
    """One test: `power` of n hold at the faithful end, `alarms` of m at the other, `null` of so many null models."""
    counts = [("100 %", power, n), ("0 %", alarms, m), ("untrained bilstm", null, of)]
    lines = [
        (rung, "t", said, k) for rung, held, all_ in counts for said, k in (("holds", held), ("fails", all_ - held))
    ]
    return verdicts(*lines)


def test_verdicts_are_counted_by_test_and_rung() -> None:
    at_none = [("0 %", "a", "holds", 1), ("0 %", "a", "fails", 3), ("0 %", "a", "cannot tell", 4)]
    at_all = [("100 %", "a", "holds", 2), ("100 %", "a", "not testable", 7)]
    frame = tally(verdicts(*at_none, *at_all, ("0 %", "b", "fails", 5)))
    assert frame.select("test", "rung", "n", "holds", "fails", "cannot_tell", "share").rows() == [
        ("a", "0 %", 8, 1, 3, 4, 0.125), ("a", "100 %", 2, 2, 0, 0, 1.0), ("b", "0 %", 5, 0, 5, 0, 0.0),
    ]  # fmt: skip


def test_rungs_are_in_order() -> None:
    names = ["untrained bilstm", "100 %", "25 %", "untrained average", "0 %"]
    frame = tally(verdicts(*((rung, "a", "fails", 1) for rung in names)))
    assert frame["rung"].to_list() == ["0 %", "25 %", "100 %", "untrained average", "untrained bilstm"]


def test_a_test_of_a_recipe_is_counted_by_groups_of_seeds_and_others_by_single_ones() -> None:
    frame = tally(
        verdicts(
            ("0 %", "stable", "cannot tell", 5, 1, "all", True), ("0 %", "stable", "fails", 1, 5, "all", True),
            ("0 %", "used", "fails", 5, 1, "all", False), ("0 %", "used", "fails", 1, 5, "all", True),
        )
    )  # fmt: skip
    assert frame.select("test", "seeds", "n").rows() == [("stable", 5, 1), ("used", 1, 5)]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_shares_have_the_exact_interval(counts: tuple[int, int]) -> None:
    theirs = binomtest(*counts).proportion_ci(0.95, method="exact")
    assert clopper_pearson(*counts) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(*(st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))) for _ in range(2)))
def test_differences_have_newcombes_interval(first: tuple[int, int], second: tuple[int, int]) -> None:
    p, q = (count / of for count, of in (first, second))
    of_p, of_q = (binomtest(count, of).proportion_ci(0.95, method="wilson") for count, of in (first, second))
    down = math.sqrt((p - of_p.low) ** 2 + (of_q.high - q) ** 2)
    up = math.sqrt((of_p.high - p) ** 2 + (q - of_q.low) ** 2)
    assert newcombe(first, second) == pytest.approx((p - q - down, p - q + up), abs=1e-9)


def test_newcombes_own_example() -> None:
    """56 of 70 against 48 of 80 (Newcombe 1998, table II, a)."""
    assert newcombe((56, 70), (48, 80)) == pytest.approx((0.0524, 0.3339), abs=5e-5)


@pytest.mark.parametrize(
    ("counts", "tells", "kept", "because"),
    [
        ((5, 5, 0, 5), "yes", True, "it tells the ends of the ladder apart: it holds in 5 of 5"),
        ((5, 5, 0, 5, 1), "yes", True, "it tells"),  # 1 of 20 is 5 %
        ((5, 5, 0, 5, 2), "yes", False, "too many false alarms: it holds in 2 of 20 audits of untrained bilstm models"),
        ((20, 20, 4, 20), "yes", False, "too many false alarms: it holds in 4 of 20 audits of unfaithful models"),
        ((0, 5, 0, 5), "no", False, "it can't tell the ends"),
        ((5, 5, 5, 5), "no", False, "it can't tell the ends"),
        ((0, 3, 0, 3), "cannot tell", False, "too few audits"),
        ((0, 5, 5, 5), "no", False, "it can't tell the ends"),  # the wrong way round
    ],
)
def test_votes(counts: Sequence[int], tells: str, kept: bool, because: str) -> None:
    (line,) = votes(tally(ends(*counts))).to_dicts()
    assert (line["tells_apart"], line["votes"]) == (tells, kept)
    assert line["why"].startswith(because)
    assert line["power"] == counts[0] / counts[1]


def test_a_test_that_was_not_asked_at_both_ends_does_not_vote() -> None:
    (line,) = votes(tally(verdicts(("100 %", "a", "holds", 9)))).to_dicts()
    assert (line["tells_apart"], line["votes"], line["false_alarm"]) == ("cannot tell", False, None)


def test_small_audits_do_not_decide() -> None:
    small = verdicts(("100 %", "t", "fails", 50, 1, "200", False), ("0 %", "t", "holds", 50, 1, "200", False))
    (line,) = votes(tally(pl.concat([ends(5, 5, 0, 5), small]))).to_dicts()
    assert line["votes"]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 20))
def test_whoever_votes_has_power_and_few_false_alarms(power: int, alarms: int, null: int) -> None:
    (line,) = votes(tally(ends(power, 6, alarms, 6, null))).to_dicts()
    if line["votes"]:
        assert line["power"] > alarms / 6
        assert max(alarms / 6, null / 20) <= ALARM
    assert line["false_alarm"] == max(alarms / 6, null / 20)


def write_run(
    folder: Path, models: Sequence[str], moved: Sequence[float], seeds: int = 5, n: int = 450, **more: Any
) -> Path:
    """A complete run of the permutation experiment: what each model's prediction moves by, with some noise."""
    experiments = [{"name": "permutation"}]
    told = {
        "name": folder.name,
        "tasks": [TASK],
        "models": models,
        "seeds": list(range(seeds)),
        "experiments": experiments,
    }
    frames = [
        pl.DataFrame({"example": range(n)}).select(
            pl.lit(TASK).alias("task"), pl.lit(model).alias("model"), pl.lit(seed, pl.Int64).alias("seed"),
            pl.lit("test").alias("split"), "example",
            median_tvd=by + 0.01 * (pl.col("example") + seed).sin().abs(), median_logit=pl.lit(0.0),
        )
        for model, by in zip(models, moved, strict=True) for seed in range(seeds)
    ]  # fmt: skip
    (folder / "tables").mkdir(parents=True)
    pl.concat(frames).write_parquet(folder / "tables" / "permutation.parquet")
    (folder / "manifest.json").write_text(json.dumps({"study": told | more, "seconds": 1.0}))
    return folder


def write_cells(run: Path, model: str, accuracy: float, seeds: int = 5) -> None:
    """How well a model predicts, as a run tells it."""
    (run / "cells").mkdir()
    for seed in range(seeds):
        where = {"task": TASK, "model": model, "seed": seed}
        facts = where | {"metrics": {"test": {"accuracy": accuracy}}, "majority": 0.5, "texts": 450, "costs": {}}
        (run / "cells" / f"{key_of(**where)}.json").write_text(json.dumps(facts))


@pytest.fixture(scope="module")
def criteria() -> Criteria:
    return load_criteria()


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "ladder", list(LADDER.values()), list(MOVED.values()))


def test_a_whole_calibration(ladder: Path, criteria: Criteria, tmp_path: Path) -> None:
    null = write_run(tmp_path / "null", ["bilstm"], [0.2], seeds=2, training={"lr": 1e-30})
    found = calibrate([ladder, null], criteria)
    assert found.frame.select("test", "rung", "texts", "n", "holds", "fails").rows() == [
        ("used", "0 %", "all", 5, 0, 5), ("used", "0 %", str(SET), 10, 0, 10),
        ("used", "100 %", "all", 5, 5, 0), ("used", "100 %", str(SET), 10, 10, 0),
        ("used", "untrained bilstm", "all", 2, 2, 0), ("used", "untrained bilstm", str(SET), 4, 4, 0),
    ]  # fmt: skip
    (line,) = found.votes.to_dicts()
    assert (line["tells_apart"], line["power"], line["false_alarm"], line["votes"]) == ("yes", 1.0, 1.0, False)


def test_a_model_that_guesses_gives_no_false_alarms_unless_the_tests_are_on_their_own(
    criteria: Criteria, tmp_path: Path
) -> None:
    null = write_run(tmp_path / "null", ["bilstm"], [0.2], seeds=2, training={"lr": 1e-30})
    write_cells(null, "bilstm", accuracy=0.51, seeds=2)
    assert set(verdicts_of(null, criteria)["verdict"]) == {"cannot tell"}
    assert set(verdicts_of(null, criteria, guarded=False)["verdict"]) == {"holds"}


def test_the_sets_of_texts_are_disjoint_and_of_one_size(
    ladder: Path, criteria: Criteria, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[int]] = []

    def judge(rows: Any, *others: Any) -> Any:
        seen.append(set(rows["permutation"]["example"]))
        return judged(rows, *others)

    monkeypatch.setattr("exegete.calibration.calibrate.judge", judge)
    verdicts_of(ladder, criteria)
    whole, first, second = seen[:3]
    assert (len(whole), len(first), len(second)) == (450, SET, SET)
    assert not first & second
    assert sorted(first) != list(range(SET))  # drawn, not the first ones


def test_a_run_without_the_ladder_is_refused(criteria: Criteria, tmp_path: Path) -> None:
    trained = write_run(tmp_path / "trained", ["bilstm"], [0.2], seeds=1, n=30)
    with pytest.raises(UsageError, match="nobody knows what a test should say of bilstm"):
        calibrate([trained], criteria)
    one_end = write_run(tmp_path / "one_end", ["ladder:share=1"], [0.2], seeds=1, n=30)
    with pytest.raises(UsageError, match="both ends of the ladder"):
        calibrate([one_end], criteria)
    with pytest.raises(UsageError, match="both ends of the ladder"):
        calibrate([], criteria)
    with pytest.raises(ExegeteError, match="there is no run folder"):
        calibrate([tmp_path / "nowhere"], criteria)


def test_a_run_without_a_test_is_refused(criteria: Criteria, tmp_path: Path) -> None:
    run = write_run(tmp_path / "empty", ["ladder:share=1"], [0.2], seeds=1, n=30)
    (run / "tables" / "permutation.parquet").unlink()
    with pytest.raises(UsageError, match="no experiment that the audit judges"):
        calibrate([run], criteria)


def test_the_rung_of_a_checkpoint_is_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.json").write_text(json.dumps({"model": "ladder:share=0.25,vectors=glove-50"}))
    study = Study.model_validate({"name": "s", "tasks": [TASK], "models": [str(tmp_path)]})
    assert rung_of(str(tmp_path), study) == "25 %"
    assert rung_of("ladder", study) == "100 %"  # as it is by default


def test_the_studies_are_of_models_whose_truth_is_known() -> None:
    found = {name: [rung_of(model, study) for model in study.models] for name in STUDIES if (study := load_study(name))}
    assert found == {
        "calibration": ["0 %", "25 %", "50 %", "75 %", "100 %"],
        "null_attention": ["0 %"],
        "null": ["untrained bilstm", "untrained average"],
    }
    assert all(len(load_study(name).seeds) == 20 for name in ("null", "null_attention"))


def test_the_learning_rate_of_the_null_study_moves_no_weight() -> None:
    task = small_task(40)
    model = small_model("bilstm:size=8,hidden=8", task.split("train"))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    given_ = load_study("null").training.model_dump() | {"metric": "accuracy"}
    Fit(model, task, TrainingSettings(**given_), seed=0).run()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_what_is_kept(ladder: Path, criteria: Criteria, tmp_path: Path) -> None:
    found = calibrate([ladder], criteria)
    keep(found, [ladder], criteria, tmp_path)
    table = pl.read_csv(tmp_path / "calibration.csv", schema_overrides={"texts": pl.String})
    assert table["holds"].to_list() == found.frame["holds"].to_list()
    kept = tomllib.loads((tmp_path / "votes.toml").read_text(encoding="utf8"))
    assert kept["version"] == criteria.version
    assert kept["used"] | {"why": ""} == {"votes": True, "power": 1.0, "false_alarm": 0.0, "n": 10, "why": ""}
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf8"))
    assert manifest["runs"]["ladder"]["study"]["models"] == list(LADDER.values())
    assert "used" in (tmp_path / "calibration.svg").read_text(encoding="utf8")


def test_the_votes_that_come_with_exegete_are_of_tests_that_it_has(criteria: Criteria) -> None:
    text = (resources.files("exegete.audits") / "votes.toml").read_text(encoding="utf8")
    said = {name: line for name, line in tomllib.loads(text).items() if isinstance(line, dict)}
    assert set(said) <= set(built_in())
    assert {"agrees", "used", "beats_chance"} <= set(said)
    assert all(isinstance(line["votes"], bool) and line["why"] and line["n"] > 0 for line in said.values())
    assert tomllib.loads(text)["version"] <= criteria.version


def test_the_file_of_votes_is_toml_and_leaves_out_what_was_not_calibrated(criteria: Criteria) -> None:
    asked = {"test": "t", "votes": False, "power": 0.5, "false_alarm": 0.0, "n": 3, "n_null": 4, "difference": 0.5}
    unasked = asked | {"test": "u", "false_alarm": None, "difference": None}
    lines = [line | {"why": 'a "b" \\ c'} for line in (asked, unasked)]
    kept = tomllib.loads(votes_file(pl.DataFrame(lines, infer_schema_length=None), criteria))
    assert kept["t"] == {"votes": False, "power": 0.5, "false_alarm": 0.0, "n": 7, "why": 'a "b" \\ c'}
    assert "u" not in kept


def test_the_figure_stacks_verdicts_and_marks_them() -> None:
    frame = tally(pl.concat([ends(3, 5, 0, 5), verdicts(("0 %", "other_test", "cannot tell", 2))]))
    table = shares(frame, ["other_test"])
    assert table["test"].unique(maintain_order=True).to_list() == ["other test", "t"]
    at = table.filter(pl.col("test") == "t", pl.col("rung") == "100 %")
    assert at.select("verdict", "below", "above", "sign").rows() == [
        ("holds", 0.0, 0.6, "✓"), ("cannot tell", 0.6, 0.6, ""), ("fails", 0.6, 1.0, "✗"),
    ]  # fmt: skip
    drawn = to_svg(calibration(frame))
    assert all(word in drawn for word in ("other test", "untrained bilstm", "✓", "share of audits"))


def test_an_empty_figure_says_so() -> None:
    assert "nothing to show" in to_svg(calibration(tally(verdicts(("0 %", "a", "not testable", 1)))))


def test_the_command(ladder: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["calibrate", str(ladder), "--out", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["votes"][0]["test"] == "used"
    assert Path(told["figure"]).is_file()
    shown = CliRunner().invoke(app, ["calibrate", str(ladder), "--out", str(tmp_path), "--quiet"])
    assert "it tells the ends of the ladder apart" in " ".join(shown.stdout.split())
