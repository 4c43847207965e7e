"""Labels: what a classifier's outputs stand for, and its classes beside those of a task.

Transformers writes no names for two classes that nobody named, so that a config without any has two. One output is the
log-odds z of a label (cross-encoders, toxicity): its two classes have the logits [−z/2, z/2], whose softmax is the
sigmoid of z. A model that gives a text several labels at once has one such output for each, and is asked about one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from exegete.base.errors import UsageError, unknown

BETWEEN = "/"  # of names in the setting `labels`
YES_OR_NO = (("0", "1"), ("false", "true"), ("no", "yes"))  # what people call the classes of one label


class Outputs(NamedTuple):
    """The classes that a model's logits stand for."""

    classes: tuple[str, ...]
    column: int | None = None  # the one logit that two classes share; None: one each


def output_names(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a model's outputs: two that nobody named, where its config says nothing."""
    named = {int(place): str(name) for place, name in (config.get("id2label") or {}).items()}
    count = int(config.get("num_labels") or 2)
    return tuple(named[place] for place in sorted(named)) or tuple(f"LABEL_{place}" for place in range(count))


def outputs_of(config: Mapping[str, Any], label: str, who: str) -> Outputs:
    """By what a model's config says, or the sentence why no class can be read from it."""
    names, kind = output_names(config), config.get("problem_type")
    if kind == "regression":
        raise UsageError(f"{who} predicts a number, not a class: take a classifier, or train one with head=cls")
    if kind == "multi_label_classification" and len(names) > 1:
        if not label:
            raise UsageError(
                f"{who} gives a text several labels at once ({', '.join(names)}), and each is a question of its own: "
                f"ask about one of them with label=NAME, as label={names[0]}"
            )
        if label not in names:
            raise unknown(f"label of {who}", label, names)
        return Outputs((f"not {label}", label), names.index(label))
    if label:
        raise UsageError(f"{who} gives a text one class: leave label={label} out")
    if len(names) == 1:
        nobody_named_it = names[0] == "LABEL_0"
        return Outputs(YES_OR_NO[0] if nobody_named_it else (f"not {names[0]}", names[0]), 0)
    return Outputs(names)


def class_order(theirs: Sequence[str], ours: Sequence[str], given: str, who: str) -> tuple[int, ...]:
    """Where every class of the task is among a model's classes; `given` names the task's in the model's order."""
    names = _names_in(given.split(BETWEEN), ours) or given.split(BETWEEN) if given else list(theirs)
    if given and len(names) != len(theirs):
        raise UsageError(
            f"{who} predicts {len(theirs)} classes ({', '.join(theirs)}) and labels={given} names {len(names)}: name "
            "as many, in this order"
        )
    own, wanted = [_plain(name) for name in names], [_plain(name) for name in ours]
    if len(own) == 2 and own[0] == f"not {own[1]}" and tuple(wanted) in YES_OR_NO:
        return 0, 1
    if sorted(own) != sorted(wanted):
        written = BETWEEN.join(ours)
        raise UsageError(
            f"{who} predicts the classes {', '.join(names)}, and the task has {', '.join(ours)}: say which is which by "
            f"naming the task's classes in the order of the model's, as in labels={written}"
        )
    return tuple(own.index(name) for name in wanted)


def _names_in(parts: Sequence[str], classes: Sequence[str]) -> list[str] | None:
    """The classes that parts between slashes spell, each once; a class may have slashes in its own name.

    >>> _names_in(["World", "Sci", "Tech"], ["world", "sci/tech"])
    ['World', 'Sci/Tech']
    """
    if not parts:
        return []
    for end in range(1, len(parts) + 1):
        name = BETWEEN.join(parts[:end])
        others = [each for each in classes if _plain(each) != _plain(name)]
        if len(others) < len(classes) and (rest := _names_in(parts[end:], others)) is not None:
            return [name, *rest]
    return None


def _plain(name: str) -> str:
    """As people write it in any case; LABEL_1 is what transformers calls class 1 where nobody named it."""
    return name.strip().casefold().removeprefix("label_")
