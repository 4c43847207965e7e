"""Companions: the models that an experiment needs beside the one it asks about, each trained once and kept."""

from collections.abc import Mapping

import torch

from exegete.base.errors import UsageError
from exegete.base.memo import key_of
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import bound
from exegete.interventions.impose import Impose
from exegete.interventions.table import WeightTable
from exegete.models.build import build_model
from exegete.models.capabilities import Trainable
from exegete.models.contract import Intervention
from exegete.runs.keys import code_of
from exegete.runs.store import stage
from exegete.runs.study import Work
from exegete.runs.training import train_stage, training_key
from exegete.tasks.example import Task
from exegete.training.checkpoint import Checkpoint
from exegete.training.fit import Fit
from exegete.training.objectives import OBJECTIVES
from exegete.training.recipe import BASE, Companion, Recipe

CompanionsByName = dict[str, Companion]


def companions(work: Work, task: Task, base: Checkpoint, recipes: Mapping[str, Recipe]) -> CompanionsByName:
    """Train, or find, every companion, in the order of the recipes."""
    known = {BASE: Companion(base.model, None, base.metrics)}
    for name, recipe in recipes.items():
        known[name] = _companion(work._replace(part=name), task, known, recipe)
    del known[BASE]
    return known


def required_recipes(recipes: Mapping[str, Recipe], only: str) -> dict[str, Recipe]:
    """The recipe of one companion and of those that it builds on; all, if none is named."""
    if not only:
        return dict(recipes)
    wanted = recipes.get(only)
    return {} if wanted is None else required_recipes(recipes, wanted.imposed or BASE) | {only: wanted}


def _companion(work: Work, task: Task, known: CompanionsByName, recipe: Recipe) -> Companion:
    seed = work.cell.seed if recipe.seed is None else recipe.seed
    spec = recipe.model or known[BASE].model.spec
    settings = recipe.settings(work.study.training_for(work.cell.task, spec))
    model = build_model(spec, task, seed)
    if recipe.warm:
        _warm(model, known[BASE].model, recipe.redrawn)
    intervene = _intervention(recipe, model, task, known)
    key = training_key(model, task, seed, settings)
    if not recipe.plain:
        key = key_of(
            plain=key,
            recipe=repr(recipe),
            at=repr(intervene),
            others=_others(recipe, known),
            code=_code(recipe, intervene),
        )
    facts = {"task": work.cell.task, "data": task.hash, "model": model.spec, "seed": seed, "recipe": repr(recipe)}
    at = stage(work.run, "train", key, **facts, training=settings.model_dump())
    made = OBJECTIVES.make(recipe.objective).bound(known[BASE].classifier, task) if recipe.objective else None
    checkpoint = train_stage(at, Fit(model, task, settings, seed, intervene, made, recipe.moves), work)
    if recipe.attention:  # what knows its model must know the trained one
        intervene = bound(INTERVENTIONS.make(recipe.attention), checkpoint.model)
    return Companion(checkpoint.model, intervene, checkpoint.metrics)


def _warm(model: Trainable, base: Trainable, redrawn: bool) -> None:
    """Give a new model the weights of the base; attention stays as it was drawn, if asked."""
    own = [(parameter, parameter.detach().clone()) for parameter in model.attention_parameters()]
    model.load_state_dict(base.state_dict())
    with torch.no_grad():
        for parameter, drawn in own if redrawn else ():
            parameter.copy_(drawn)


def _intervention(recipe: Recipe, model: Trainable, task: Task, known: CompanionsByName) -> Intervention | None:
    if recipe.attention:
        return bound(INTERVENTIONS.make(recipe.attention), model)
    if not recipe.imposed:
        return None
    if recipe.imposed not in known:
        raise UsageError(f"a recipe imposes the attention of '{recipe.imposed}', which is not trained before it")
    source = known[recipe.imposed]
    texts = [example for split in task.splits.values() for example in split]
    return Impose(table=WeightTable.of(source.classifier, texts, source.intervene))


def _others(recipe: Recipe, known: CompanionsByName) -> dict[str, str]:
    """The weights of the models that a recipe builds on."""
    names = {BASE} if recipe.objective or recipe.warm else set()
    names |= {recipe.imposed} if recipe.imposed else set()
    return {name: known[name].model.fingerprint() for name in sorted(names)}


def _code(recipe: Recipe, intervene: Intervention | None) -> list[str]:
    objective = OBJECTIVES.make(recipe.objective) if recipe.objective else None
    return [code_of(made) for made in (objective, intervene) if made is not None]
