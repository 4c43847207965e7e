"""Build: from a run folder to its report."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from exegete.answers.audit import judge_run
from exegete.answers.pages.chapters import chapters, of_this_version, results_in
from exegete.answers.pages.citations import bibtex, papers_of
from exegete.answers.pages.groups import groups_section
from exegete.answers.pages.texts import HeatMaps, telling_texts
from exegete.answers.pages.verdicts import (
    for_reader,
    informing,
    questions_of_tests,
    scorecards,
    unasked_tests,
    verdicts,
)
from exegete.answers.scorecard import Audit
from exegete.base.catalogue import added_entries
from exegete.base.files import whole_file, write_text
from exegete.base.memo import key_of, read_memo, write_memo
from exegete.base.names import parse
from exegete.base.source import digest_of, package_hash
from exegete.report.columns import count, number, share, text
from exegete.report.labels import shorten_paths
from exegete.report.section import Figure, Report, Section, Table
from exegete.runs.names import names_in, shorten_names
from exegete.runs.run import read_manifest, study_of
from exegete.runs.study import Study
from exegete.runs.tables import write_csv
from exegete.training.skill import Skill

__all__ = [
    "for_reader",
    "headlines",
    "informing",
    "keep_results",
    "predictions",
    "questions_of_tests",
    "run_notes",
    "scorecards",
    "short",
    "unasked_tests",
    "verdicts",
    "write_run_report",
]

PAGE, WRITTEN = "report.html", "report.json"  # the page, and what it was made of
HARDLY = 0.05  # accuracy above the most frequent class below which a model has learnt little
QUESTION = "May this model's attention be read as an explanation of its predictions, and if not, what should be read?"
READ = (
    "A transformer's attention can be read at many sites, heads and queries. Each way was judged by the criteria "
    "of the readout: it may be read where it holds, and the answer names it only if it was chosen on other texts."
)
DECIDING = "mediation"  # the experiment that decides
FIRST = "How far attention goes, and what goes further"
ORDERS = (
    "Every dot is a way of removing words. (1 + Γ) / 2 is the share of pairs of words in the right order: 85 of 100 at "
    "0.7, 75 at 0.5."
)
CEILING = " No single order of words is the best in all ways; {} how far one can get."
CHECKED = (
    "Rarest class: its texts. Repeated: texts that the split has before. Also in train: texts that train has, too."
)
GOALS = {"faithful": "faithfulness", "plausible": "plausibility", "sanity": "sanity"}


def write_run_report(run: Path, out: Path | None = None, audit: Audit | None = None) -> Path:
    """One HTML file that works offline, beside the run's tables and figures; returns its path."""
    manifest = read_manifest(run)
    study = study_of(run)
    judged = for_reader(audit or judge_run(study, run, keep=True))
    page = out or run / PAGE
    key = _key(manifest, judged)
    if out is None and _is_written(run, key):
        return page
    from exegete.answers.pages.document import render  # what draws is heavy, and was not needed until now

    sections = {name: entry.load()(study, judged.frame) for name, entry in added_entries("sections").items()}
    tables = {name: table for name, table in sections.items() if table is not None}
    for name, table in tables.items():
        write_csv(run / "tables" / f"{name}.csv", table.frame)
    write_text(page, render(_report(run, study, manifest, judged, list(tables.values()))))
    if out is None and key is not None:
        write_memo(run / WRITTEN, "page", key, digest_of(page))
    return page


def _key(manifest: dict[str, Any], audit: Audit) -> str | None:
    """Everything that a page depends on; None where a user's own code has a part in it."""
    if manifest.get("seal") is None:
        return None
    return key_of(manifest=manifest, package=package_hash(), audit=audit.to_json(), goal=audit.goal)


def _is_written(run: Path, key: str | None) -> bool:
    """Whether the page is there, of these very findings, and nobody has changed it."""
    if key is None or not (run / PAGE).is_file():
        return False
    return bool(read_memo(run / WRITTEN, "page", key) == digest_of(run / PAGE))


def keep_results(run: Path, folder: Path) -> None:
    """Copy what a study found, small enough for a repository: tables as CSV, figures as SVG, and the manifest."""
    read_manifest(run)
    kept = [*sorted((run / "tables").glob("*.csv")), *sorted((run / "figures").glob("*.svg")), run / "manifest.json"]
    for source in kept:
        with whole_file(folder / source.name) as beside:
            beside.write_bytes(source.read_bytes())


def _report(run: Path, study: Study, manifest: dict[str, Any], audit: Audit, tables: list[Table]) -> Report:
    from exegete.answers.pages.side_by_side import models_section
    from exegete.answers.pages.words import words_section

    names = names_in(run)
    tasks, models = ([names.get(each, each) for each in given] for given in (study.tasks, study.models))

    asked = [found.name for _, found in results_in(run, study)]
    texts = telling_texts(run, manifest["cells"], study.split, audit.tests)
    words = words_section(run, manifest["cells"], study.split, audit.tests)
    papers = [test.paper for test in audit.tests] or [paper for name in asked for paper in papers_of(name)]
    return Report(
        title=shorten_paths(shorten_names(study.title or study.name, names), (*study.tasks, *study.models)),
        question=QUESTION,
        answer=audit.answer,
        grade=next(iter(audit.decisions.values())).label if len(audit.decisions) == 1 else "",
        first=_first(run, study),
        findings=audit.findings,
        verdicts=verdicts(audit, asked),
        facts=_facts(manifest, audit),
        sections=[*_readings(audit), *_chapters(run, study, audit, texts), *([words] if words else [])],
        cite=bibtex(papers),
        goal=GOALS.get(audit.goal, "") if audit.tests else "",
        user=audit.user,
        untested=audit.untested,
        comparison=models_section(audit.tests, tasks, models),
        appendix=list(_appendix(run, study, tables)),
    )


def _first(run: Path, study: Study) -> Figure | None:
    """The figure of the answer: how every method orders words; None where that was not asked."""
    found = next((found for _, found in results_in(run, study) if found.name == DECIDING), None)
    if found is None:
        return None
    with of_this_version(run):
        several = found.summary.select("task", "model").n_unique() > 1
        where = "grey dots show" if several else "the top line shows"
        more = CEILING.format(where) if "ceiling" in found.summary.columns else ""
        return Figure(FIRST, found.charts()["orders"], f"{ORDERS}{more}")


def _chapters(run: Path, study: Study, audit: Audit, texts: HeatMaps | None) -> Iterator[Section]:
    """Every experiment's; that of what decides also says of which texts it is so."""
    beside = groups_section(audit)
    for chapter in chapters(run, study, audit.tests, texts):
        adds = beside is not None and chapter.anchor == DECIDING
        yield replace(chapter, parts=[beside, *chapter.parts]) if adds and beside else chapter


def _readings(audit: Audit) -> Iterator[Section]:
    """What was judged of other ways of reading; their numbers have a chapter of their own below."""
    if tables := audit.reading_tables():
        yield Section("Ways of reading its attention", "ways-of-reading", [READ], tables)


def _facts(manifest: dict[str, Any], audit: Audit) -> dict[str, str]:
    cells = manifest["cells"]
    data = {cell["task"]: f"{cell['task']} ({cell['data']['origin']}, {cell['data']['hash']})" for cell in cells}
    libraries = [f"{name} {number}" for name, number in manifest["libraries"].items()]
    return {
        "data": "; ".join(data.values()),
        "models": f"{len(cells)} trained, seeds {', '.join(sorted({str(cell['seed']) for cell in cells}))}",
        "criteria": f"version {audit.criteria_version}",
        "exegete": f"{manifest['exegete']}, code {manifest['code']}",
        "libraries": ", ".join([f"python {manifest['python']}", *libraries]),
        "time": f"{manifest['seconds']:.0f} s for the last command",
    }


def headlines(run: Path) -> list[Table]:
    """The one table of each experiment that a terminal shows."""
    study = study_of(run)
    with of_this_version(run):
        return [told.headline(found) for told, found in results_in(run, study)]


def _appendix(run: Path, study: Study, tables: Sequence[Table]) -> Iterator[Section]:
    if tables:
        yield Section("Beside the published numbers", "", study.notes, tables)
    elif study.notes:
        yield Section("What differs", "", study.notes)
    yield Section(
        "Data and models", "", short(run, [*predictions(run), *run_notes(run)]), [*_checks(run), _models(run)]
    )


def _checks(run: Path) -> Iterator[Table]:
    """What was counted in the texts of every task; runs of before have no such tables."""
    checks = {cell["task"]: cell["data"].get("check") for cell in read_manifest(run)["cells"]}
    columns = [text("split"), count("texts"), number("words", "mean words"), count("classes")]
    columns += [count("rarest", "rarest class"), count("repeated"), share("share", "also in train")]
    for task, check in checks.items():
        if check is not None and "planted" not in parse(task).settings:
            (name,) = short(run, [f"The texts of {task}"])
            frame = pl.DataFrame(check["splits"]).with_columns(share=pl.col("shared") / pl.col("texts"))
            yield Table(name, frame, CHECKED, columns)


def _models(run: Path) -> Table:
    frame = pl.read_csv(run / "tables" / "models.csv", glob=False)
    columns = [text("task"), text("model"), count("seed"), count("best_epoch", "best epoch")]
    columns += [number("test_accuracy", "accuracy"), number("test_auc", "AUC"), number("test_macro_f1", "macro F1")]
    return Table("Test scores of the models", frame, columns=columns)


def run_notes(run: Path, everything: bool = True) -> list[str]:
    """What a reader must know: what was left out of the data, what a model may have seen, which method said nothing;
    unless everything is asked for, without what holds of planted words, and why an experiment was not asked.
    """
    manifest = read_manifest(run)
    cells, missing = manifest["cells"], manifest.get("missing", ())
    lost = [f"missing, as workers died at it (out of memory?): {piece}" for piece in missing]
    told = [cell for cell in cells if everything or "planted" not in parse(cell["task"]).settings]
    data = {f"{cell['task']}: {note}" for cell in told for note in cell["data"]["notes"]}
    methods = {
        f"{cell['task']}, {cell['model']}: {note}"
        for cell in told
        for note in cell["notes"]
        if everything or not re.match(r"\w+ was not asked: ", note)
    }
    return lost + sorted(data) + sorted(methods)


def short(run: Path, sentences: Iterable[str]) -> list[str]:
    """Sentences for a person, with the files of tasks and models called by their own names."""
    named = {cell[of] for cell in read_manifest(run)["cells"] for of in ("task", "model")}
    return [shorten_paths(sentence, named) for sentence in sentences]


def predictions(run: Path) -> list[str]:
    """How well every model predicts; what may be a guess is said aloud."""
    numbers = dict.fromkeys(("majority", "test_accuracy", "skill_value", "skill_low", "skill_high"), pl.Float64)
    table = pl.read_csv(run / "tables" / "models.csv", glob=False, schema_overrides=numbers)
    skills = [pl.col("skill_value", "skill_low", "skill_high").mean(), pl.col("skill_measure", "skill_chance").first()]
    means = table.group_by("task", "model", maintain_order=True).agg(
        pl.len().alias("seeds"), pl.col("test_accuracy", "majority").mean(), pl.col("^skill_n$").sum(),
        *(skills if "skill_value" in table.columns else ()),
    )  # fmt: skip
    return [_prediction(row) for row in means.iter_rows(named=True)]


def _prediction(row: dict[str, Any]) -> str:
    accuracy, majority = row["test_accuracy"], row["majority"]
    seeds = f", mean of {row['seeds']} seeds" if row["seeds"] > 1 else ""
    if row.get("skill_measure") == "unlabelled":
        return f"{row['model']} on {row['task']}: the texts have no labels, so that nobody knows how often it is right"
    if majority is None:  # a translator
        said = f"{row['model']} on {row['task']}: {accuracy:.1%} of the words right, each after the right ones{seeds}"
    else:
        said = f"{row['model']} on {row['task']}: test accuracy {accuracy:.3f}"
        said += f" (most frequent class {majority:.3f}{seeds})"
    if row.get("skill_measure"):
        skill = Skill.read({name.removeprefix("skill_"): value for name, value in row.items()})
        guess = ": IT MAY ONLY GUESS; there is nothing to explain" if skill.is_guess else ""
        return f"{said}, {skill.said}{guess}"
    return said if majority is None else _beside_the_frequent(said, accuracy, majority)


def _beside_the_frequent(said: str, accuracy: float, majority: float) -> str:
    """Of runs of before, which say no more than accuracy."""
    if accuracy >= majority + HARDLY:
        return said
    how = "HARDLY BETTER" if accuracy >= majority else "WORSE"
    return f"{said}: {how} than the most frequent class; there is little to explain"
