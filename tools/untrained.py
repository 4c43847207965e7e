"""Models that learnt nothing: `python -m tools.untrained FOLDER` keeps what gate and deciding tests say of them.

As they are made, and *loud*: the last layer multiplied until predictions are sure, so that words move them. Neither may
get a *Yes* or a *No*: the gate (exegete.training.skill) is asked of all, and those that it lets through get the
deciding tests of the quick audit. What these would say without a gate is asked of the first few seeds.
"""

import sys
from pathlib import Path
from typing import Any

import polars as pl
import torch

from exegete.audits.criteria import load_criteria
from exegete.models.build import build_model
from exegete.models.capabilities import Trainable
from exegete.models.ours.module import Model
from exegete.runs.tables import write_csv
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Task
from exegete.training.evaluation import predict
from exegete.training.skill import skill_of_classes
from exegete.wings.calibration.draws import audited, mediation_of

TASK = "rotten_tomatoes:min_df=2"
MODELS = ("bilstm:vectors=glove-50", "average:vectors=glove-50", "cnn:vectors=glove-50", "transformer")
SEEDS, UNGUARDED = 20, 3
LOUD = 30.0  # times the output layer


def made(spec: str, task: Task, seed: int, loud: bool) -> Trainable:
    """A model as it begins, perhaps with a loud voice."""
    model = build_model(spec, task, seed)
    if loud:
        with torch.no_grad():
            assert isinstance(model, Model)
            for name, parameter in model.named_parameters():
                if name.startswith("decoder."):
                    parameter.mul_(LOUD)
    model.eval()
    return model


def line(spec: str, task: Task, seed: int, loud: bool) -> dict[str, Any]:
    """What is said of one of them."""
    model, texts = made(spec, task, seed, loud), task.split("test")
    label = torch.tensor([e.label for e in texts])
    skill = skill_of_classes(predict(model, texts).double().softmax(-1), label, task.split("train"))
    asked = seed < UNGUARDED or not skill.is_guess
    said = audited(model, task, mediation_of("quick"), load_criteria(None))["answer"] if asked else None
    facts = {"model": spec, "seed": seed, "loud": loud, "auc": skill.value, "low": skill.low, "high": skill.high}
    return facts | {"answer": None if skill.is_guess else said, "unguarded": said if seed < UNGUARDED else None}


def main(folder: Path) -> None:
    """Ask all of them."""
    task = load_task(TASK)
    rows = [line(spec, task, seed, loud) for spec in MODELS for loud in (False, True) for seed in range(SEEDS)]
    table = pl.DataFrame(rows, infer_schema_length=None)
    write_csv(folder / "untrained.csv", table)
    with pl.Config(tbl_rows=40):
        through, told = pl.col("low") > 0.5, pl.col("answer").is_in(["yes", "no"])
        print(
            table.group_by("model", "loud", maintain_order=True).agg(pl.len(), through.sum(), told.sum().alias("told"))
        )
        print(table.filter(pl.col("unguarded").is_not_null()).group_by("model", "loud", "unguarded").len())


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]))
