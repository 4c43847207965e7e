"""Labels: a model's classes beside those of a task, matched by name or as the user says."""

from collections.abc import Sequence

from exegete.base.errors import UsageError

BETWEEN = "/"  # of names in the setting `labels`


def order_of(theirs: Sequence[str], ours: Sequence[str], given: str, who: str) -> tuple[int, ...]:
    """Where every class of the task is among a model's outputs; `given` names the task's in the model's order."""
    names = _names_in(given.split(BETWEEN), ours) or given.split(BETWEEN) if given else list(theirs)
    if given and len(names) != len(theirs):
        raise UsageError(
            f"{who} predicts {len(theirs)} classes ({', '.join(theirs)}) and labels={given} names {len(names)}: name "
            "as many, in this order"
        )
    found = [_plain(name) for name in names]
    wanted = [_plain(name) for name in ours]
    if sorted(found) != sorted(wanted):
        written = BETWEEN.join(ours)
        raise UsageError(
            f"{who} predicts the classes {', '.join(names)}, and the task has {', '.join(ours)}: say which is which by "
            f"naming the task's classes in the order of the model's, as in labels={written}"
        )
    return tuple(found.index(name) for name in wanted)


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
