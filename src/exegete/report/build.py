"""Build: from a run folder to its report."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from exegete.base.files import read_json, whole_file, write_text
from exegete.experiments.agreement import ALL, Agreement
from exegete.figures.labels import importance_label, model_labels, pair_label, task_labels
from exegete.report.columns import Column, count, interval, number, share, spread, text
from exegete.report.comparison import comparison
from exegete.report.html import render
from exegete.report.page import Figure, Report, Section, Table, Verdict
from exegete.report.page import scorecard as verdict_table
from exegete.studies.audit import Audit
from exegete.studies.auditing import judge_run
from exegete.studies.run import STUDY, read_manifest, write_csv
from exegete.studies.study import Study

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
        sections=list(_sections(run, study, audit, beside)),
        cite=CITE,
    )


def verdicts(audit: Audit) -> list[Verdict]:
    """The scorecard's lines; where there are several models, each says which it is about."""
    models = model_labels({test.model for test in audit.tests})
    tasks = task_labels(test.task for test in audit.tests)
    several = len({(test.task, test.model) for test in audit.tests}) > 1
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


AGREEMENT = (
    "Kendall's τ-b between the rankings that two importances give the words of a text, averaged over texts. Unrelated "
    "rankings score 0 on average. Wiegreffe & Pinter (2019) object that τ disfavours models whose states mix words."
)
TOP_K = (
    "The coefficient behind the published top-k numbers (here: legacy) leaves out pairs of words of which each list "
    "holds only one. Lists that share nothing then score about +0.8. Random scores show it: if they do as well as "
    "attention, the coefficient tells nothing. Fagin's coefficient counts those pairs; every value stands beside what "
    "unrelated rankings of the same length, k and ties score."
)
TIES = (
    "Sparse attention gives many words exactly 0. Tied words cap τ-b: with s non-zeros among n words it can't exceed "
    "√(1 − C(n−s,2)/C(n,2)). τ-b over this maximum, and Goodman & Kruskal's γ, which ignores tied pairs, are corrected "
    "for it."
)


def _sections(run: Path, study: Study, audit: Audit, beside: Table | None) -> Iterator[Section]:
    summary = audit.frame
    rows = pl.read_parquet(run / "tables" / "agreement.parquet")
    asked = study.built_experiments()["agreement"]
    assert isinstance(asked, Agreement)
    charts = asked.figures(rows, summary)
    histogram = Figure("τ by predicted class", charts["histogram"], "Share of texts in each of 30 bins of τ.")
    density = Figure("τ of the pairs", charts["density"], "Densities, reflected at ±1; all seeds together.")
    yield Section(
        "Do importances agree?",
        "",
        [AGREEMENT],
        [agreement_table(run), _by_class(summary, asked)],
        [histogram, density],
    )
    if "topk" in charts:
        figure = Figure("Attention and random scores against gradient", charts["topk"])
        yield Section("Top-k agreement and its chance level", "", [TOP_K], [_topk(summary, asked)], [figure])
    figure = Figure("τ-b, its attainable maximum, and what remains", charts["ties"])
    yield Section("What ties allow", "", [TIES], [_ties(summary, asked)], [figure])
    if beside is not None:
        yield Section("Beside the published numbers", "", study.notes, [beside])
    yield Section("The models", "", [*predictions(run), *notes(run)], [_models(run)])


def agreement_table(run: Path) -> Table:
    """τ of every pair over all texts, with interval and chance."""
    summary = pl.read_parquet(run / "tables" / "agreement_summary.parquet")
    shown = _labelled(summary.filter((pl.col("measure") == "tau") & (pl.col("class") == ALL)))
    columns = [*_which(shown), text("pair"), number("mean", "τ"), interval("low", "high"), number("chance")]
    columns += [share("significant", "p ≤ .05"), count("n"), *_if_any(shown, "undefined")]
    return Table("Rank agreement", shown, "Mean τ-b over texts; interval over texts, and seeds if several.", columns)


def _if_any(frame: pl.DataFrame, name: str) -> list[Column]:
    """A count that is shown only where it is not 0 throughout."""
    return [count(name)] if frame[name].sum() else []


def _which(frame: pl.DataFrame) -> list[Column]:
    """Task and model, where there is more than one."""
    return [text(name) for name in ("task", "model") if frame[name].n_unique() > 1]


def _labelled(summary: pl.DataFrame) -> pl.DataFrame:
    """Task, model and pair as people say them."""
    models = model_labels(summary["model"].unique().to_list())
    pairs = pl.struct("first", "second").map_elements(lambda p: pair_label(p["first"], p["second"]), pl.String)
    return summary.with_columns(
        pl.col("task").replace_strict(task_labels(summary["task"])),
        pl.col("model").replace_strict(models),
        pairs.alias("pair"),
    )


def _by_class(summary: pl.DataFrame, asked: Agreement) -> Table:
    shown = _labelled(
        summary.filter((pl.col("measure") == "tau") & (pl.col("class") != ALL) & (pl.col("first") != asked.noise))
    )
    columns = [
        *_which(shown), text("pair"), text("class", "class"), spread("mean", "std"), interval("low", "high"),
        share("significant", "p ≤ .05"), count("n"), count("undefined"),
    ]  # fmt: skip
    return Table("By class", shown, "Mean ± standard deviation of τ-b, and the share of texts with p ≤ 0.05.", columns)


def _topk(summary: pl.DataFrame, asked: Agreement) -> Table:
    kept = summary.filter((pl.col("k") != ALL) & (pl.col("class") == ALL) & (pl.col("second") == asked.against[1]))
    shown = kept.pivot("first", index=["task", "model", "measure", "k"], values=["mean", "chance"], maintain_order=True)
    models = model_labels(shown["model"].unique().to_list())
    shown = shown.with_columns(
        pl.col("task").replace_strict(task_labels(shown["task"])), pl.col("model").replace_strict(models)
    )
    pairs = [(first, importance_label(first)) for first in kept["first"].unique(maintain_order=True)]
    columns = [*_which(shown), text("measure"), text("k")]
    for first, label in pairs:
        columns += [number(f"mean_{first}", label), number(f"chance_{first}", "chance")]
    return Table("Top-k τ with gradient", shown, "Mean over texts (and seeds), and its chance level.", columns)


def _ties(summary: pl.DataFrame, asked: Agreement) -> Table:
    over_all = summary.filter((pl.col("k") == ALL) & (pl.col("class") == ALL) & (pl.col("first") != asked.noise))
    index = ["task", "model", "first", "second"]
    wide = over_all.pivot("measure", index=index, values="mean", maintain_order=True)
    maximum = over_all.filter(pl.col("measure") == "tau").select(*index, "maximum")
    shown = _labelled(wide.join(maximum, on=index, maintain_order="left"))
    columns = [
        *_which(shown), text("pair"), number("tau", "τ-b"), number("maximum", "attainable"),
        number("tau_corrected", "τ-b / attainable"),        number("gamma", "γ"), number("spearman", "ρ"),
    ]  # fmt: skip
    return Table(
        "Corrected for ties",
        shown,
        "Means over texts; the attainable maximum is that of each text's own ties.",
        columns,
    )


def _models(run: Path) -> Table:
    frame = pl.read_csv(run / "tables" / "models.csv")
    columns = [text("task"), text("model"), count("seed"), count("best_epoch", "best epoch")]
    columns += [number("test_accuracy", "accuracy"), number("test_auc", "AUC"), number("test_macro_f1", "macro F1")]
    return Table("Test scores of the models", frame, columns=columns)


def notes(run: Path) -> list[str]:
    """What a reader must know of the data: what was left out, how it was split, what a model may have seen."""
    return sorted({f"{cell['task']}: {note}" for cell in read_manifest(run)["cells"] for note in cell["data"]["notes"]})


def predictions(run: Path) -> list[str]:
    """How well every model predicts, beside always naming the most frequent class; hardly better is said aloud."""
    table = pl.read_csv(run / "tables" / "models.csv")
    means = table.group_by("task", "model", maintain_order=True).agg(
        pl.len().alias("seeds"), pl.col("test_accuracy").mean()
    )
    return [
        _prediction(row) for row in means.join(_majorities(run), on="task", maintain_order="left").iter_rows(named=True)
    ]


def _majorities(run: Path) -> pl.DataFrame:
    """The share of the most frequent class among the texts that were studied, by task."""
    rows = pl.scan_parquet(run / "tables" / "agreement.parquet").select("task", "example", "gold").unique()
    shares = pl.col("gold").unique_counts().max() / pl.len()
    return rows.group_by("task").agg(shares.alias("majority")).collect()


def _prediction(row: dict[str, Any]) -> str:
    accuracy, majority = row["test_accuracy"], row["majority"]
    seeds = f", mean of {row['seeds']} seeds" if row["seeds"] > 1 else ""
    said = f"{row['model']} on {row['task']}: test accuracy {accuracy:.3f} (most frequent class {majority:.3f}{seeds})"
    hardly = accuracy < majority + HARDLY
    return f"{said}: HARDLY BETTER than the most frequent class; there is little to explain" if hardly else said
