"""Experiments: one folder per question of the debate; their classes by name, imported when they are asked for."""

from typing import Any


def _places() -> dict[str, str]:
    """By class, the name of the experiment."""
    from exegete.experiments.catalogue import EXPERIMENTS

    places = {name: EXPERIMENTS[name].place for name in EXPERIMENTS}
    return {p.rpartition(":")[2] if isinstance(p, str) else p.__name__: name for name, p in places.items()}


def __getattr__(name: str) -> Any:
    """`exegete.experiments.Permutation`: an experiment's class."""
    from exegete.experiments.catalogue import EXPERIMENTS

    if name.startswith("_") or name not in (places := _places()):
        raise AttributeError(f"module 'exegete.experiments' has no experiment '{name}'")
    return EXPERIMENTS[places[name]].load()


def __dir__() -> list[str]:
    return sorted(_places())
