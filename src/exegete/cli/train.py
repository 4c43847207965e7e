"""Train: a model, kept as a checkpoint folder."""

from pathlib import Path
from typing import Annotated

import typer

from exegete.cli.app import Device, Json, Quiet, app, print_json, show_notes


@app.command("train")
def train_command(
    task: Annotated[
        str, typer.Option(help="rotten_tomatoes, file:reviews.csv, hf:owner/name, with settings: imdb:subset=jw")
    ],
    model: Annotated[
        str, typer.Option(help="bilstm, pair, translator, … (see ls models), with settings: bilstm:attention=dot")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the checkpoint.")],
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    training: Annotated[str, typer.Option(help="Training settings: epochs=8,lr=1e-3,metric=auc,…")] = "",
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a model and keep it as a checkpoint folder."""
    from exegete.base.device import on_device
    from exegete.report.terminal import ProgressBars
    from exegete.runs.training import train_model

    with on_device(device), ProgressBars(quiet) as bars:
        checkpoint, notes = train_model(task, model, seed, training, out, bars)
    test = checkpoint.metrics["test"]
    if as_json:
        said = {
            "test_accuracy": test["accuracy"],
            "checkpoint": str(out),
            "metrics": checkpoint.metrics,
            "notes": notes,
        }
        print_json(said)
        return
    show_notes(notes)
    best = checkpoint.metrics["best_epoch"]
    print(f"test accuracy {test['accuracy']:.3f} (best epoch {best}); checkpoint in {out}")
