"""Tokens: the words of a task's texts as a table, to be filled with the scores of another tool."""

from pathlib import Path
from typing import Annotated

import typer

from exegete.base.errors import UsageError
from exegete.cli.app import Json, app, print_json, show_notes

WRITERS = {".parquet": "write_parquet", ".csv": "write_csv", ".jsonl": "write_ndjson"}


@app.command("tokens")
def tokens_command(
    task: Annotated[str, typer.Option(help="rotten_tomatoes, file:reviews.csv, hf:owner/name, with settings.")],
    out: Annotated[Path, typer.Option(help="The file to write: .parquet, .csv or .jsonl.")],
    split: Annotated[list[str] | None, typer.Option(help="test unless given; may be repeated: dev, test.")] = None,
    as_json: Json = False,
) -> None:
    """Write a task's words, a row each, for another tool to score (see `given` in ls importances)."""
    if out.suffix not in WRITERS:
        raise UsageError(f"'{out.name}' is no kind of file that can be written: choose from {', '.join(WRITERS)}")
    from exegete.base.files import whole_file
    from exegete.importance.given import tokens_of
    from exegete.tasks.catalogue import load_task

    read = load_task(task)
    frame = tokens_of(read, split or ["test"])
    with whole_file(out) as beside:
        getattr(frame, WRITERS[out.suffix])(beside)
    texts = frame.select("split", "example").n_unique()
    if as_json:
        print_json({"file": str(out), "texts": texts, "tokens": len(frame), "notes": list(read.notes)})
        return
    show_notes(read.notes)
    print(f"{len(frame):,} words of {texts:,} texts: {out}; add a column `score`, then name given:file={out}")
