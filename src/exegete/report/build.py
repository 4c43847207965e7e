"""Build: from a run folder to its report."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from exegete.base.errors import ExegeteError
from exegete.base.files import read_json, whole_file, write_text
from exegete.figures.labels import model_labels, task_labels
from exegete.report.columns import count, number, text
from exegete.report.comparison import comparison
from exegete.report.html import render
from exegete.report.page import Report, Section, Table, Verdict
from exegete.report.page import scorecard as verdict_table
from exegete.report.sections.contract import Found, Sections
from exegete.studies.audit import Audit
from exegete.studies.auditing import judge_run
from exegete.studies.run import STUDY, read_manifest, write_csv
from exegete.studies.study import Study

_ROOM = "exegete.report.sections"
PLAIN = "plain"  # how an experiment without a module of its own is told
HARDLY = 0.05  # accuracy above the most frequent class below which a model has learnt little
QUESTION = "May this model's attention be read as an explanation of its predictions, and if not, what should be read?"
CITE = "Exegete (software). Cite the paper whose test you quote as well: each is named beside its test."


def write_report(run: Path, out: Path | None = None, audit: Audit | None = None) -> Path:
    """One HTML file that works offline, beside the run's tables and figures; returns its path."""
    manifest = read_manifest(run)
    study = Study.model_validate(read_json(run / STUDY, "run"))
    judged = audit or judge_run(study, run)
    page = out or run / "report.html"
    beside = comparison(study, judged.frame)
    if beside is not None:
        write_csv(run / "tables" / "published.csv", beside.frame)
    write_text(page, render(_report(run, study, manifest, judged, beside)))
    return page


def keep_results(run: Path, folder: Path) -> None:
    """Copy what a study found, small enough for a repository: tables as CSV, figures as SVG, and the manifest."""
    read_manifest(run)
    kept = [*sorted((run / "tables").glob("*.csv")), *sorted((run / "figures").glob("*.svg")), run / "manifest.json"]
    for source in kept:
        with whole_file(folder / source.name) as beside:
            beside.write_bytes(source.read_bytes())


def _report(run: Path, study: Study, manifest: dict[str, Any], audit: Audit, beside: Table | None) -> Report:
    return Report(
        title=study.title or study.name,
        question=QUESTION,
        answer=audit.answer,
        verdicts=verdicts(audit),
        facts=_facts(manifest),
        sections=list(_sections(run, study, beside)),
        cite=CITE,
    )


def verdicts(audit: Audit) -> list[Verdict]:
    """The scorecard's lines; where there are several models, each says which it is about."""
    models = model_labels({test.model for test in audit.tests})
    tasks = task_labels(test.task for test in audit.tests)
    names = [test.name for test in audit.tests]
    several = len(set(names)) < len(names)  # then a name alone doesn't say which model it is about
    return [
        Verdict(
            name=f"{test.name} · {tasks[test.task]} · {models[test.model]}" if several else test.name,
            verdict=test.verdict,
            statistic=test.statistic,
            interval=None if None in test.interval else test.interval,  # type: ignore[arg-type]
            chance=test.chance,
            n=test.n,
            criterion=test.criterion,
            paper=test.paper,
        )
        for test in audit.tests
    ]


def scorecard(audit: Audit) -> Table:
    """The scorecard for a terminal: the numbers in a narrow table; `questions` says what they mean."""
    whole = verdict_table(verdicts(audit))
    return replace(whole, columns=[c for c in whole.columns if c.title not in ("criterion", "paper")], caption="")


def questions(audit: Audit) -> list[str]:
    """What every test asks, its criterion, and the paper it comes from."""
    asked = {
        test.name: f"{test.name}: {test.question} Holds if {test.criterion} ({test.paper})." for test in audit.tests
    }
    return list(asked.values())


def _facts(manifest: dict[str, Any]) -> dict[str, str]:
    cells = manifest["cells"]
    data = {cell["task"]: f"{cell['task']} ({cell['data']['origin']}, {cell['data']['hash']})" for cell in cells}
    return {
        "data": "; ".join(data.values()),
        "models": f"{len(cells)} trained, seeds {', '.join(sorted({str(cell['seed']) for cell in cells}))}",
        "exegete": f"{manifest['exegete']}, code {manifest['code']}",
        "libraries": ", ".join(f"{name} {number}" for name, number in manifest["libraries"].items()),
        "time": f"{manifest['seconds']:.0f} s for the last command",
    }


def found_in(run: Path, study: Study) -> Iterator[tuple[Sections, Found]]:
    """Every experiment that left something in a run, with what tells it to a person."""
    for name, built in study.built_experiments().items():
        if (run / "tables" / f"{name}.parquet").is_file():
            told: Any = import_module(f"{_ROOM}.{name if find_spec(f'{_ROOM}.{name}') else PLAIN}")
            yield told, Found(run, name, built)


def headlines(run: Path) -> list[Table]:
    """The one table of each experiment that a terminal shows."""
    study = Study.model_validate(read_json(run / STUDY, "run"))
    with _of_this_version(run):
        return [told.headline(found) for told, found in found_in(run, study)]


@contextmanager
def _of_this_version(run: Path) -> Iterator[None]:
    """Tables that lack a column were written by another version, whose report this can't be."""
    try:
        yield
    except pl.exceptions.ColumnNotFoundError as error:
        missing = str(error).splitlines()[0]
        raise ExegeteError(
            f"the tables in {run} were made by another version of exegete ({missing}): run its study again"
        ) from None


def _sections(run: Path, study: Study, beside: Table | None) -> Iterator[Section]:
    for told, found in found_in(run, study):
        with _of_this_version(run):
            yield from told.sections(found)
    if beside is not None:
        yield Section("Beside the published numbers", "", study.notes, [beside])
    elif study.notes:
        yield Section("What differs", "", study.notes)
    yield Section("The models", "", [*predictions(run), *notes(run)], [_models(run)])


def _models(run: Path) -> Table:
    frame = pl.read_csv(run / "tables" / "models.csv")
    columns = [text("task"), text("model"), count("seed"), count("best_epoch", "best epoch")]
    columns += [number("test_accuracy", "accuracy"), number("test_auc", "AUC"), number("test_macro_f1", "macro F1")]
    return Table("Test scores of the models", frame, columns=columns)


def notes(run: Path) -> list[str]:
    """What a reader must know: what was left out of the data, what a model may have seen, which method said nothing."""
    cells = read_manifest(run)["cells"]
    data = {f"{cell['task']}: {note}" for cell in cells for note in cell["data"]["notes"]}
    methods = {f"{cell['task']}, {cell['model']}: {note}" for cell in cells for note in cell["notes"]}
    return sorted(data) + sorted(methods)


def predictions(run: Path) -> list[str]:
    """How well every model predicts, beside always naming the most frequent class; hardly better is said aloud."""
    table = pl.read_csv(run / "tables" / "models.csv", schema_overrides={"majority": pl.Float64})
    means = table.group_by("task", "model", maintain_order=True).agg(
        pl.len().alias("seeds"), pl.col("test_accuracy", "majority").mean()
    )
    return [_prediction(row) for row in means.iter_rows(named=True)]


def _prediction(row: dict[str, Any]) -> str:
    accuracy, majority = row["test_accuracy"], row["majority"]
    seeds = f", mean of {row['seeds']} seeds" if row["seeds"] > 1 else ""
    if majority is None:  # a translator
        return f"{row['model']} on {row['task']}: {accuracy:.1%} of the words right, each after the right ones{seeds}"
    said = f"{row['model']} on {row['task']}: test accuracy {accuracy:.3f} (most frequent class {majority:.3f}{seeds})"
    if accuracy >= majority + HARDLY:
        return said
    how = "HARDLY BETTER" if accuracy >= majority else "WORSE"
    return f"{said}: {how} than the most frequent class; there is little to explain"
