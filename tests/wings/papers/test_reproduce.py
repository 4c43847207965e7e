"""Reproducing: every paper's file, every printed number accounted for, and ours found by hand."""

import csv
import math
from pathlib import Path

import polars as pl
import pytest
from scipy.stats import binom

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.names import parse
from exegete.wings.papers.catalogue import PAPERS
from exegete.wings.papers.lookup import KeptTables, is_model, is_task, printed_place
from exegete.wings.papers.paper import PARTS, Paper, load_paper, read_paper
from exegete.wings.papers.published import KEYS, PAPERS_FOLDER, SIGNS, read_published
from exegete.wings.papers.reproduce import Reproduction, compare, find_tables, plan, write_reproduction

RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture(params=[*PAPERS])
def paper(request: pytest.FixtureRequest) -> Paper:
    return load_paper(request.param)


def test_every_paper_has_a_file_and_numbers(paper: Paper) -> None:
    printed = read_published(paper.name)
    assert {path.stem for path in PAPERS_FOLDER.glob("*.csv")} == {*PAPERS}
    assert printed.select(KEYS).is_unique().all()
    assert set(printed["table"]) <= set(paper.tables)
    words = printed.filter(pl.col("mean").is_null())
    assert set(words["sign"]) <= set(SIGNS)
    assert set(printed.filter(pl.col("mean").is_not_null())["sign"]) <= {""}


def test_every_entry_of_a_file_is_about_a_printed_number(paper: Paper) -> None:
    closed = {name for name, table in paper.tables.items() if table.impossible or table.not_compared}
    printed = read_published(paper.name).filter(~pl.col("table").is_in(closed))
    for kind in PARTS:
        assert set(paper.parts(kind)) <= set(printed[kind]), kind
    assert set(paper.quantities) <= set(printed["quantity"])
    without = set(paper.tables) - set(read_published(paper.name)["table"])
    assert all(paper.tables[name].figures for name in without)


def test_every_printed_number_is_accounted_for(paper: Paper) -> None:
    """Without any result of ours each says why; none is dropped."""
    nowhere = compare(paper, tuple(paper.tables), RESULTS / "nowhere")
    printed = read_published(paper.name)
    assert nowhere.frame.select(KEYS).equals(printed.select(KEYS))
    assert set(nowhere.frame["verdict"]) <= {"not run", "impossible", "not compared"}
    assert all(nowhere.frame["reason"])
    open_ = [line for line in nowhere.lines if line.verdict == "not run"]
    assert all(paper.tables[line.table].sources for line in open_)


def test_a_number_whose_words_nobody_explains_is_an_error(paper: Paper) -> None:
    table = next(name for name, t in paper.tables.items() if not (t.impossible or t.not_compared or t.figures))
    row = read_published(paper.name).filter(pl.col("table") == table).row(0, named=True)
    for key in ("dataset", "quantity"):
        with pytest.raises(UsageError, match=f"unknown {key} of {paper.name}.toml 'nothing'"):
            printed_place(paper, row | {key: "nothing"})


def test_what_can_be_run_is_in_our_studies(paper: Paper) -> None:
    """Every printed number that is neither impossible nor left out has a cell in a study that is run for it."""
    closed = {name for name, table in paper.tables.items() if table.impossible or table.not_compared}
    planned = {name: plan(paper, [name]) for name in paper.tables if name not in closed}
    for row in read_published(paper.name).filter(~pl.col("table").is_in(closed)).iter_rows(named=True):
        place = printed_place(paper, row)
        if place.first("impossible") or place.quantity.not_compared or row["model"] == "":
            continue
        cells = [cell for _, part in planned[row["table"]].values() for cell in part]
        by_task = [cell for cell in cells if is_task(cell.task, place.task)]
        assert by_task or _known_gap(paper.name, row), row
        assert any(is_model(cell.model, place.models) for cell in by_task) or _known_gap(paper.name, row), row


def _known_gap(paper: str, row: dict[str, str]) -> bool:
    """What our data allow and no study of ours asks yet."""
    return (paper == "meister_2021" and row["dataset"] == "IMDb" and row["model"].startswith("Transformer")) or (
        paper == "vashishth_2019" and "Rocktäschel" in row["model"]
    )


def test_quick_is_a_part(paper: Paper) -> None:
    whole, quick = plan(paper, tuple(paper.tables)), plan(paper, tuple(paper.tables), quick=True)
    assert set(whole) == set(quick)
    for name, (study, cells) in quick.items():
        assert set(cells) <= set(whole[name][1]) | set(study.cells)
        assert {cell.seed for cell in cells} == {study.seeds[0]}


GOOD = """
title = "t"
authors = "a"
year = 2020
claim = "c"
[tables.T1]
shows = "s"
[datasets.D]
task = "sst"
[quantities.q]
shows = "s"
table = "t"
"""


TOY = """task,model,condition,when,before,change,low,high,n,seeds
sst,bilstm,uniform,training,0.82,-0.004,-0.018,0.008,1821,3
sst,bilstm,uniform,inference,0.82,-0.05,-0.06,-0.04,1821,3
sst,bilstm,random,inference,0.82,-0.016,-0.029,-0.004,1821,3
"""


def test_a_toy_table_has_verdicts_that_fail(tmp_path: Path) -> None:
    """Printed: uniform −1.0 retrained and −0.8 at inference, random −0.9 at inference; the margin is 2 points."""
    (tmp_path / "vashishth_2019").mkdir()
    (tmp_path / "vashishth_2019" / "necessity_summary.csv").write_text(TOY, encoding="utf8")
    lines = compare(load_paper("vashishth_2019"), ["T1"], tmp_path).lines
    found = {(line.projection, line.quantity): (line.verdict, line.reason) for line in lines if line.ours is not None}
    assert found["uniform", "delta_accuracy_train+infer"] == (
        "reproduced",
        "no effect is what is printed: one of less than 2 would not be seen",
    )
    assert found["uniform", "delta_accuracy_infer"][0] == "deviates"  # [−8, −2] holds neither −0.8 nor 0
    assert found["random", "delta_accuracy_infer"] == ("too coarse to tell", "")  # [−4.9, 1.6] holds −0.9, and 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"sorces = []\n{GOOD}", "'sorces' is no key of a paper's file"),
        (GOOD.replace("2020", '"soon"'), "year: Input should be a valid integer"),
        (GOOD.replace("claim", "# claim"), "'claim' is missing"),
        (GOOD.replace('table = "t"', ""), "quantities.q: say its table, or why it is not_compared"),
        (f"{GOOD}low = 'low'", "quantities.q: low and high go together"),
        (GOOD.replace("task", "tsk"), "'datasets.D.tsk' is no key of a paper's file"),
        (GOOD.replace('"sst"', '"sst:max"'), "is not a setting"),
        (f"{GOOD}[[", "is not TOML"),
    ],
)
def test_a_wrong_file_is_one_sentence(text: str, sentence: str) -> None:
    assert read_paper("mine", GOOD).title == "t"
    with pytest.raises(UsageError) as raised:
        read_paper("mine", text)
    assert sentence in str(raised.value)


def test_unknown_papers_and_tables_have_suggestions() -> None:
    with pytest.raises(UsageError, match="unknown paper 'meister_2020': did you mean 'meister_2021'"):
        find_tables("meister_2020")
    with pytest.raises(UsageError, match="unknown table of meister_2021 'T66': did you mean 'T6'"):
        find_tables("meister_2021:T66")
    assert find_tables("meister_2021:T6")[1] == ("T6",)


def test_models_match_by_what_they_are_not_by_how_they_are_written() -> None:
    wanted = [parse("bilstm:attention=tanh,projection=softmax")]
    assert is_model("bilstm:vectors=glove", wanted)
    assert is_model("bilstm:projection=softmax,vectors=glove-50,attention=tanh", wanted)
    assert not is_model("bilstm:attention=dot", wanted)
    assert not is_model("bilstm:projection=sparsegen,lam=0.5", wanted)
    assert not is_model("average", wanted)
    assert not is_model("checkpoints/bilstm", wanted)
    assert is_task("babi:task=1", parse("babi:task=1"))
    assert not is_task("babi:task=2", parse("babi:task=1"))
    assert not is_task("sst5", parse("sst"))


def _small(tmp_path: Path, accuracy: float = 0.9) -> Path:
    """Kept results of one study, three seeds, written by hand."""
    folder = tmp_path / "vashishth_2019"
    folder.mkdir()
    head = "task,model,condition,when,seeds,n,before,change,low,high"
    lines = [
        'sst,"bilstm:vectors=glove",uniform,inference,3,3000,0.834,-0.020,-0.030,-0.010',
        'sst,"bilstm:vectors=glove",uniform,training,3,3000,0.834,-0.150,-0.160,-0.140',
        'sst,"bilstm:attention=dot",uniform,inference,3,3000,0.5,0.9,0.9,0.9',
    ]
    (folder / "necessity_summary.csv").write_text("\n".join([head, *lines]) + "\n")
    (folder / "models.csv").write_text(
        f'task,model,seed,majority,test_accuracy\nsst,"bilstm:vectors=glove",0,0.5,{accuracy}\n'
    )
    (folder / "manifest.json").write_text('{"exegete": "0", "code": "c", "cells": [1]}')
    return tmp_path


def test_no_verdict_without_the_gate(paper: Paper) -> None:
    """Every study that a row rests on says what guessing would reach, and rows of models that guess can't tell."""
    for line in compare(paper, tuple(paper.tables), RESULTS).lines:
        if not line.study:
            continue
        models = pl.read_csv(RESULTS / line.study / "models.csv")
        mine = models.filter(pl.col("task") == line.task, pl.col("model") == line.our_model)
        assert "majority" in models.columns
        if mine.height and line.table != "T3":  # of a translation there is no class to guess
            guesses = mine["test_accuracy"].mean() < mine["majority"].mean() + 0.05  # type: ignore[operator]
            assert not guesses or line.verdict == "cannot tell", line


def _of(found: Reproduction, quantity: str, projection: str) -> dict[str, object]:
    chosen = (pl.col("quantity") == quantity, pl.col("projection") == projection)
    first = (pl.col("dataset") == "SST", pl.col("model").str.starts_with("BiRNN"))
    return found.frame.filter(*chosen, *first).row(0, named=True)


def test_units_seeds_and_tolerance_by_hand(tmp_path: Path) -> None:
    found = compare(*find_tables("vashishth_2019:T1"), _small(tmp_path))
    infer = _of(found, "delta_accuracy_infer", "uniform")
    assert (infer["published"], infer["ours"], infer["low"], infer["high"]) == (-0.8, -2.0, -3.0, -1.0)
    assert (infer["seeds"], infer["n"], infer["tolerance"]) == (3, 3000, 2.0)
    assert infer["verdict"] == "too coarse to tell"  # [−5, 1] holds no change at all, too
    trained = _of(found, "delta_accuracy_train+infer", "uniform")
    assert (trained["ours"], trained["verdict"]) == (-15.0, "deviates")  # a printed −1.0 has no side within 2 points
    own = _of(found, "accuracy", "softmax")
    assert (own["ours"], own["verdict"]) == (pytest.approx(83.4), "reproduced")
    low, high = own["low"], own["high"]  # 834 of the 1,000 texts that every training was asked about, exactly
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert binom.sf(833, 1000, low / 100) == pytest.approx(0.025) == binom.cdf(834, 1000, high / 100)
    assert _of(found, "delta_accuracy_infer", "random")["verdict"] == "not run"
    path = write_reproduction(found, tmp_path / "out", tmp_path)
    with path.open(encoding="utf8") as file:
        assert len(list(csv.DictReader(file))) == 48


def test_a_model_that_learnt_nothing_shows_nothing(tmp_path: Path) -> None:
    found = compare(*find_tables("vashishth_2019:T1"), _small(tmp_path, accuracy=0.52))
    infer = _of(found, "delta_accuracy_infer", "uniform")
    assert infer["verdict"] == "cannot tell"
    assert "has not learnt the task: accuracy 0.520, most frequent class 0.500" in str(infer["reason"])
    own = _of(found, "accuracy", "softmax")
    assert (own["ours"], own["verdict"]) == (pytest.approx(83.4), "cannot tell")  # told, and no verdict hangs on it


def test_one_training_against_one_is_less_exact(tmp_path: Path) -> None:
    folder = _small(tmp_path)
    table = folder / "vashishth_2019" / "necessity_summary.csv"
    table.write_text(table.read_text().replace(",3,3000,", ",1,10,"))
    found = compare(*find_tables("vashishth_2019:T1"), folder)
    assert _of(found, "delta_accuracy_infer", "uniform")["tolerance"] == pytest.approx(2 * math.sqrt(2))


def test_tables_of_another_version_are_refused(tmp_path: Path) -> None:
    folder = _small(tmp_path)
    table = folder / "vashishth_2019" / "necessity_summary.csv"
    table.write_text(table.read_text().replace("condition", "weights"))
    with pytest.raises(ExegeteError, match="has no column 'condition'"):
        compare(*find_tables("vashishth_2019:T1"), folder)


def test_two_rows_for_one_number_are_refused(tmp_path: Path) -> None:
    folder = _small(tmp_path)
    table = folder / "vashishth_2019" / "necessity_summary.csv"
    table.write_text(table.read_text() + table.read_text().splitlines()[1] + "\n")
    with pytest.raises(ExegeteError, match=r"2 rows of .* are one printed number"):
        compare(*find_tables("vashishth_2019:T1"), folder)


def test_seeds_of_a_table_are_averaged(tmp_path: Path) -> None:
    (tmp_path / "meister_2021").mkdir()
    rows = "".join(f"sst,bilstm:vectors=glove,{seed},{value}\n" for seed, value in enumerate((0.80, 0.82, 0.84)))
    (tmp_path / "meister_2021" / "models.csv").write_text(f"task,model,seed,test_accuracy\n{rows}")
    found = (
        compare(*find_tables("meister_2021:T3"), tmp_path).frame.filter(pl.col("ours").is_not_null()).row(0, named=True)
    )
    half = 4.302653 * 0.02 / math.sqrt(3)  # Student's t, two degrees of freedom
    assert found["ours"] == pytest.approx(0.82)
    assert (found["low"], found["high"]) == (pytest.approx(0.82 - half), pytest.approx(0.82 + half))
    assert found["seeds"] == 3


def test_what_is_not_worth_a_verdict_says_why(tmp_path: Path) -> None:
    """An adversary that stayed, and a trend that chance would give."""
    (tmp_path / "interventions").mkdir()
    line = "sst,bilstm,frozen,0.03,1,10,0.004,0.003,0.005,0.76,-0.06,-0.07,-0.05\n"
    head = "task,model,kind,lam,seeds,n,jsd,jsd_low,jsd_high,accuracy,difference,difference_low,difference_high\n"
    (tmp_path / "interventions" / "adversary_training_meister_5.csv").write_text(head + line)
    (tmp_path / "meister_2021").mkdir()
    sweep = (
        "task,family,measure,reading,tau,low,high,p,n\nsst,bilstm,entropy_gradient_inputs,grid,-0.8,-0.8,-0.8,0.08,5\n"
    )
    (tmp_path / "meister_2021" / "dispersion_sweep.csv").write_text(sweep)
    paper = load_paper("meister_2021")
    found = compare(paper, ["T2", "T5"], tmp_path).frame.filter(pl.col("ours").is_not_null())
    said = dict(found.select("quantity", pl.concat_str("verdict", "reason", separator=": ")).rows())
    assert said["corr(lambda,norm_entropy_g_y(x))"] == "cannot tell: p = 0.08 over 5 trainings"
    assert said["adv_accuracy"] == said["adv_accuracy_diff_vs_base"]
    assert said["adv_accuracy"] == "cannot tell: our jsd is only 0.004: there is nothing to judge"
    assert said["adv_JSD"] == said["adv_accuracy"]  # neither that it can leave nor that it can't


def test_an_adversary_that_left_is_judged(tmp_path: Path) -> None:
    (tmp_path / "interventions").mkdir()
    head = "task,model,kind,lam,seeds,n,jsd,jsd_low,jsd_high,accuracy,difference,difference_low,difference_high\n"
    for jsd, verdict in ((0.0499, "cannot tell"), (0.0501, "deviates")):
        line = f"sst,bilstm,frozen,0.03,1,10,{jsd},{jsd},{jsd},0.76,-0.06,-0.07,-0.05\n"
        (tmp_path / "interventions" / "adversary_training_meister_5.csv").write_text(head + line)
        found = compare(load_paper("meister_2021"), ["T5"], tmp_path).frame.filter(pl.col("ours").is_not_null())
        assert dict(found.select("quantity", "verdict").rows())["adv_JSD"] == verdict


@pytest.mark.parametrize(
    ("paper", "table", "wanted", "file", "row", "column", "scale"),
    [
        (
            "jain_wallace_2019", "T2", {"dataset": "SST", "model": "Average", "quantity": "tau_grad", "class": "1"},
            "interventions/agreement_summary.csv",
            {"task": "sst", "model": "average:vectors=glove-50", "first": "attention", "second": "gradient",
             "measure": "tau", "class": "1"}, "mean", 1,
        ),
        (
            "serrano_smith_2019", "T2", {"dataset": "IMDB", "class": "remove_top_flips=yes,remove_random_flips=no"},
            "serrano_smith_2019/decision_flips_summary.csv",
            {"model": "hierarchical:vectors=glove", "remove_top": "yes", "remove_random": "no"}, "share", 100,
        ),
        (
            "meister_2021", "T5", {"dataset": "SST", "model": "BiLSTM (adv. unfrozen)", "quantity": "adv_JSD"},
            "interventions/adversary_training_meister_5.csv",
            {"task": "sst", "model": "bilstm:vectors=glove-50", "kind": "unfrozen", "lam": "0.01"}, "jsd", 1,
        ),
    ],
)  # fmt: skip
def test_kept_cells_by_hand(
    paper: str, table: str, wanted: dict[str, str], file: str, row: dict[str, str], column: str, scale: float
) -> None:
    with (RESULTS / file).open(encoding="utf8") as opened:
        theirs = [line for line in csv.DictReader(opened) if all(line[key] == value for key, value in row.items())]
    found = compare(*find_tables(f"{paper}:{table}"), RESULTS).frame
    mine = found.filter(*(pl.col(key) == value for key, value in wanted.items())).row(0, named=True)
    assert mine["ours"] == pytest.approx(scale * float(theirs[0][column]))
    assert mine["study"] == Path(file).parent.name


def test_the_tables_of_a_run_are_found_too(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "models.csv").write_text("task,model\nsst,bilstm\n")
    kept = KeptTables("small", tmp_path)
    table = kept.table("models")
    assert table is not None
    assert table.rows() == [("sst", "bilstm")]
    assert kept.table("nothing") is None
