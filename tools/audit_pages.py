"""Pages of the audit's tests, written from their declarations: `python -m tools.audit_pages` after one has changed.

It writes docs/tests/NAME.md, and the tables of docs/tests/index.md and README.md between their marks.
"""

from pathlib import Path

from exegete.experiments.common.test import Test
from exegete.experiments.tests import built_in, by_part, note_of

ROOT = Path(__file__).parents[1]
MARKS = "<!-- tests:begin -->\n", "<!-- tests:end -->"


def page(test: Test) -> str:
    """One test's page."""
    note = note_of(test.experiments[0])
    assert note is not None
    goals = " and ".join(f"`--goal {goal}`" for goal in test.goals)
    lines = {
        "experiment": ", ".join(f"`{name}`" for name in test.experiments),
        "statistic": test.measures,
        "holds if": test.criterion.format(margin=test.margin),
        "threshold": f"{test.threshold(test.margin):g}".replace("-", "−"),
        "chance": test.chance,
        "decides": f"for {goals}" if goals else "no goal: it informs",
    }
    table = "\n".join(f"| {name} | {said} |" for name, said in lines.items())
    return (
        f"# {test.name}\n\n**{test.question}** ({test.source})\n\n| | |\n|---|---|\n{table}\n\n{test.remark}\n\n"
        f"More: [{Path(note.page).stem}](../{note.page}). "
        "What a verdict needs: [statistics that don't mislead](../concepts/statistics.md).\n"
    )


def table(folder: str) -> str:
    """All tests, with links into a folder."""
    rows = [
        f"| [`{t.name}`]({folder}{t.name}.md) | {t.question} | {t.source} | {t.about} | {', '.join(t.goals)} |\n"
        for t in by_part()
    ]
    return "| test | question | source | about | decides |\n|---|---|---|---|---|\n" + "".join(rows)


def pages() -> dict[Path, str]:
    """What every file should say."""
    docs = ROOT / "docs" / "tests"
    found = {docs / f"{test.name}.md": page(test) for test in built_in().values()}
    for file, folder in ((docs / "index.md", ""), (ROOT / "README.md", "docs/tests/")):
        before, rest = file.read_text(encoding="utf8").split(MARKS[0])
        found[file] = before + MARKS[0] + table(folder) + MARKS[1] + rest.split(MARKS[1])[1]
    return found


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf8")
