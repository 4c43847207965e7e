"""Any experiment in a report: its summary, its further tables and its figures, as they are."""

from collections.abc import Iterator

from exegete.experiments.common.section import QuestionResult
from exegete.report.section import Figure, Section, Table


def headline(found: QuestionResult) -> Table:
    """The summary."""
    return Table(_spoken(found.name), found.summary)


def sections(found: QuestionResult) -> Iterator[Section]:
    """One section with everything."""
    tables = [headline(found), *(Table(_spoken(n), frame) for n, frame in found.experiment.tables(found.rows).items())]
    figures = [Figure(_spoken(n), chart) for n, chart in found.charts().items()]
    yield Section(_spoken(found.name), "", (), tables, figures)


def _spoken(name: str) -> str:
    return name.replace("_", " ").capitalize()
