"""Skill of a cell's model on the texts of its study, kept as a stage: it is asked right after training, and later."""

import torch

from exegete.base.memo import key_of
from exegete.base.parquet import read_parquet
from exegete.models.capabilities import Writing
from exegete.runs.keys import code_hash
from exegete.runs.stages import Case, predict_stage
from exegete.runs.store import read_shards, stage
from exegete.training.evaluation import predict
from exegete.training.skill import Skill, skill_of_classes, skill_of_translations


def skill_stage(case: Case) -> Skill:
    """Whether the model of a case does better than a guess."""
    at = stage(case.run, "skill", key_of(**case.content, code=code_hash("exegete.training.skill")), **case.content)
    if not at.done:
        with at.held():
            if not at.done:
                at.finish(skill=_skill(case)._asdict())
    return Skill.read(at.result()["skill"])


def _skill(case: Case) -> Skill:
    train, model = case.task.splits.get("train", ()), case.checkpoint.model
    if not case.task.labelled:
        return Skill("unlabelled", None, None, None, 0.0, len(case.examples))
    if isinstance(model, Writing):
        return skill_of_translations(model, case.examples, train)
    columns = ["gold", "probabilities"]
    kept = read_parquet(read_shards(predict_stage(case).folder), columns)
    if kept["probabilities"].null_count():  # of so many classes that they are not kept
        probabilities = predict(case.model, case.examples).double().softmax(-1)
        return skill_of_classes(probabilities, torch.tensor([e.label for e in case.examples]), train)
    labels = {label: place for place, label in enumerate(case.task.labels)}
    gold = torch.tensor([labels[label] for label in kept["gold"]])
    probabilities = torch.from_numpy(kept["probabilities"].explode().to_numpy().copy())
    return skill_of_classes(probabilities.view(len(kept), -1), gold, train)
