"""Families of truths: hand-set models with drawn parameters, of which we know by construction what attention is worth.

A family is one declaration: a name, what its construction says of attention, why, and how its parameters are drawn.
Whatever it does not draw itself is drawn as in `_language` and `Knobs` below. A draw is keyed by the family's name and
a number, and is a model and a task that are the same in every process. What a single draw is worth is graded by what
its words and weights do (exegete.wings.calibration.truth), not by the declaration.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from exegete.base.noise import normal, stable_seed, uniform
from exegete.models.truths.classifier import LABELS, HandSet, Wiring
from exegete.models.truths.texts import COMMON, Language
from exegete.tasks.example import Example, Task
from exegete.tasks.vocabulary import SPECIAL, UNKNOWN

TEXTS = {"train": 300, "test": 400, "population": 300}
LOW = -3.0  # the score of a word that doesn't matter: its gate is nearly closed
SINK = 6.0  # what a sink scores above all others
BLUR = (1.0, 1.1)  # spread of scores around the logarithm of effects, under which Γ is about .6
NEARLY = (1.2, 1.3)  # the largest weight by the smallest, where weights are nearly alike
KnownGrade = Literal["strong", "partly", "no"]


class Dice:
    """Numbers by name, of one draw."""

    def __init__(self, *key: object) -> None:
        self.key = key

    def real(self, name: str, low: float, high: float) -> float:
        """Between two numbers."""
        return low + (high - low) * float(uniform(stable_seed(*self.key, name), 0))

    def whole(self, name: str, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self.real(name, low, high + 1))

    def coin(self, name: str) -> bool:
        """Heads or tails."""
        return self.real(name, 0, 1) < 0.5

    def reals(self, name: str, count: int) -> Tensor:
        """Uniform numbers."""
        return uniform(stable_seed(*self.key, name), torch.arange(count))

    def normals(self, name: str, count: int) -> Tensor:
        """Standard normal numbers."""
        return normal(stable_seed(*self.key, name), torch.arange(count))


@dataclass(frozen=True)
class Knobs:
    """How scores and values of words are set, and how the model is wired."""

    order: Literal["size", "copy", "even", "random", "reverse", "flat"] = "size"  # what scores follow
    sharp: float = 5.0  # a cue's score above other words
    tail: float = 0.5  # spread of the scores of other words
    vary: float = 0.0  # the largest score above the smallest, in the order "even"
    least: float = 1.0  # the smallest cue, of the largest: 1, all are alike
    hum: float = 0.02  # values of other words, of a cue's
    grades: float = 0.0  # the largest value by the smallest, of all words alike; none: cues stand out
    loud: float = 0.0  # value of a tenth of the other words, which get no attention
    missed: float = 0.0  # cues that get no attention, and act by the mean alone
    backward: float = 0.0  # kinds of cues that get less weight than any other word
    one_sided: bool = False  # so does every second kind of the first class
    acts: bool = False  # values are divided by gates: words do what was drawn, whatever their weights are
    strength: float = 0.0  # of words that modify the next one
    sink: bool = False  # the most frequent word takes nearly all weight
    gain: float = 3.0  # the median size of a logit
    lean: float = 0.0  # a constant in the logit, of the gain


class DrawnFamily(NamedTuple):
    """What a family draws."""

    language: dict[str, Any]
    knobs: dict[str, Any]
    wiring: dict[str, Any]


@dataclass(frozen=True)
class Family:
    """A declaration."""

    name: str
    known: KnownGrade
    why: str
    draw: Callable[[Dice], DrawnFamily]


class Truth(NamedTuple):
    """One draw."""

    family: Family
    number: int
    model: HandSet
    task: Task


def draw_family(family: Family, number: int) -> Truth:
    """A model and a task by the family's name and a number."""
    dice = Dice("truth", family.name, number)
    own = family.draw(dice)
    language = replace(_language(dice), **own.language)
    knobs = Knobs(**_common(dice) | own.knobs)
    wiring = Wiring(**own.wiring)
    texts = {split: language.texts(split, count) for split, count in TEXTS.items()}
    name = f"truth:family={family.name.replace(' ', '_')},number={number}"
    model = HandSet(name, language.vocabulary(wiring.first), _table(language, knobs, dice), wiring)
    model.wiring = _scaled(model, texts["train"], knobs)
    noise = dice.real("noise", 0.0, 0.15)
    return Truth(family, number, model, _task(name, model, texts, noise, dice))


def _language(dice: Dice) -> Language:
    fillers, shortest = dice.whole("fillers", 150, 600), dice.whole("shortest", 6, 10)
    return Language(
        seed=stable_seed(*dice.key, "texts"), fillers=fillers, rare=int(fillers * dice.real("rare", 0.2, 0.5)),
        zipf=dice.real("zipf", 0.8, 1.3), shortest=shortest, longest=shortest + dice.whole("longer", 4, 14),
        kinds=2 * dice.whole("kinds", 4, 20), balance=dice.real("balance", 0.25, 0.75),
    )  # fmt: skip


def _common(dice: Dice) -> dict[str, Any]:
    return {
        "sharp": dice.real("sharp", 3.0, 8.0), "tail": dice.real("tail", 0.2, 1.2), "hum": dice.real("hum", 0.0, 0.15),
        "gain": dice.real("gain", 2.0, 5.0),
    }  # fmt: skip


def _table(language: Language, knobs: Knobs, dice: Dice) -> Tensor:
    """Score, value and strength of every row of the vocabulary: [row, 3]."""
    cues, fillers = language.kinds, language.fillers - language.rare
    loud = (dice.reals("loud", fillers) < 0.1) & bool(knobs.loud)
    value = _values(cues, loud, knobs, dice)
    score = LOW + knobs.tail * dice.normals("tails", cues + fillers) + _order(value, cues, knobs, dice)
    score[cues:][loud] = LOW - 2 * knobs.sharp
    missed = dice.reals("missed", cues) < knobs.missed
    score[:cues][missed], value[:cues][missed] = LOW, value[:cues][missed] * (language.shortest + language.longest) / 2
    score[:cues][_backward(cues, knobs)] = score.min() - 1
    strength = torch.zeros_like(value)
    strength[cues + COMMON : cues + COMMON + language.modifiers] = knobs.strength
    if knobs.sink:
        score[cues], value[cues] = score.max() + SINK, 0.0
    if knobs.acts:
        value = value / score.sigmoid()
    special = torch.zeros(len(SPECIAL), 3, dtype=torch.float64)
    special[UNKNOWN, 0] = LOW
    return torch.cat([special, torch.stack([score, value, strength], -1)])


def _values(cues: int, loud: Tensor, knobs: Knobs, dice: Dice) -> Tensor:
    """What words say: cues for the classes in turn, then other words, some of them loud."""
    sign = torch.where(torch.arange(cues) % 2 == 1, 1.0, -1.0).double()
    cue = sign * (knobs.least + (1 - knobs.least) * dice.reals("sizes", cues))
    other = knobs.hum * dice.normals("hums", len(loud))
    other = torch.where(loud, knobs.loud * dice.normals("louds", len(loud)).sign(), other)
    if knobs.grades:
        size = knobs.grades ** -dice.reals("grades", cues + len(loud))
        return size * torch.cat([sign, other.sign()])
    return torch.cat([cue, other])


def _backward(cues: int, knobs: Knobs) -> Tensor:
    """Cues that get less weight than any other word, [cue]: a share of either class, or half of the first one."""
    number = torch.arange(cues)
    return (number // 2 < round(knobs.backward * cues / 2)) | (knobs.one_sided & (number % 4 == 0))


def _order(value: Tensor, cues: int, knobs: Knobs, dice: Dice) -> Tensor:
    """What is added to the scores of words, by what they follow."""
    is_cue = torch.arange(len(value)) < cues
    if knobs.order in ("size", "reverse"):
        return torch.where(is_cue, value.abs(), 0.0) * (knobs.sharp if knobs.order == "size" else -knobs.sharp)
    if knobs.order == "copy":
        return value.abs().clamp(min=1e-3).log()
    if knobs.order == "even":
        return knobs.vary * value.abs() / value.abs().max()
    return knobs.sharp / 2 * dice.normals("orders", len(value)) if knobs.order == "random" else torch.zeros_like(value)


@torch.no_grad()
def _scaled(model: HandSet, texts: list[tuple[str, ...]], knobs: Knobs) -> Wiring:
    """The wiring with a gain under which the median logit has the size that was drawn."""
    plain = replace(model.wiring, ceiling=0.0)
    model.wiring, ceiling = plain, model.wiring.ceiling
    size = float((2 * model.logits(model.collate(_examples(texts)))[:, 1]).abs().median())
    gain = knobs.gain / max(size, 1e-6)
    return replace(plain, gain=gain, bias=knobs.lean * knobs.gain, ceiling=ceiling * knobs.gain)


def _examples(texts: list[tuple[str, ...]], labels: list[int] | None = None, first: int = 0) -> tuple[Example, ...]:
    return tuple(Example(first + i, (text,), labels[i] if labels else 0) for i, text in enumerate(texts))


@torch.no_grad()
def _task(name: str, model: HandSet, texts: dict[str, list[tuple[str, ...]]], noise: float, dice: Dice) -> Task:
    """Texts with the model's own classes, of which a share is wrong."""
    splits, first = {}, 0
    for split, some in texts.items():
        said = model.logits(model.collate(_examples(some))).argmax(-1)
        labels = (said ^ (dice.reals(f"noise {split}", len(some)) < noise).long()).tolist()
        splits[split] = _examples(some, labels, first)
        first += len(some)
    return Task(name, LABELS, splits, "drawn", min_df=1)


def _room(dice: Dice, most: int) -> dict[str, Any]:
    """Softmax or a null key, as a coin falls."""
    return {"room": most + 2} if dice.coin("null key") else {}


def _sharp(dice: Dice) -> DrawnFamily:
    return DrawnFamily(
        {}, {"sharp": dice.real("sharp", 6.0, 10.0), "tail": dice.real("tail", 0.5, 2.0)}, _room(dice, 1)
    )


def _loud(dice: Dice) -> DrawnFamily:
    return DrawnFamily({"most": dice.whole("most", 1, 2)}, {"loud": dice.real("loud", 2.0, 10.0)}, {})


def _signed(dice: Dice) -> DrawnFamily:
    most = dice.whole("most", 3, 5)
    return DrawnFamily({"fewest": 2, "most": most, "pure": dice.real("pure", 0.6, 0.8)}, {}, {"room": most + 2})


def _graded(dice: Dice) -> DrawnFamily:
    most = dice.whole("most", 2, 4)
    knobs = {"least": dice.real("least", 0.2, 0.7), "sharp": dice.real("sharp", 4.0, 10.0)}
    return DrawnFamily({"fewest": 1, "most": most}, knobs, {"room": most + 2})


def _redundant(dice: Dice) -> DrawnFamily:
    few = DrawnFamily({"fewest": 2, "most": dice.whole("most", 2, 3)}, {}, {})
    many = dice.whole("many", 3, 5)
    ceiling = dice.real("ceiling", 0.6, 1.2)
    return (
        few
        if dice.coin("few")
        else DrawnFamily({"fewest": 2, "most": many}, {}, {"room": many + 2, "ceiling": ceiling})
    )


def _contextual(dice: Dice) -> DrawnFamily:
    language = {"most": dice.whole("most", 1, 2), "modifiers": dice.whole("modifiers", 2, 8)}
    strength, sharp = dice.real("strength", 0.3, 1.5), dice.real("sharp", 4.0, 6.0)
    wiring = {"context": sharp * dice.real("context", 0.6, 1.0) / strength, "room": 6}
    knobs = {"strength": strength, "sharp": sharp, "tail": dice.real("tail", 0.1, 0.4)}
    return DrawnFamily(language | {"modified": dice.real("modified", 0.4, 0.9)}, knobs, wiring)


def _held_back(dice: Dice) -> DrawnFamily:
    language = {"most": dice.whole("most", 1, 3), "balance": 0.05}
    return DrawnFamily(language, {"lean": dice.real("lean", 1.6, 2.2)}, {"room": 5})


def _unread(dice: Dice) -> DrawnFamily:
    return DrawnFamily({"most": dice.whole("most", 1, 3)}, {"order": "random"}, {"read": 0.0})


def _copy(dice: Dice) -> DrawnFamily:
    language = {"most": dice.whole("most", 1, 3)}
    return DrawnFamily(language, {"order": "copy", "least": dice.real("least", 0.3, 1.0), "tail": 0.1}, {"read": 0.0})


def _reverse(dice: Dice) -> DrawnFamily:
    knobs = {"order": "reverse", "sharp": dice.real("sharp", 1.0, 3.0)}
    return DrawnFamily({"most": dice.whole("most", 1, 3)}, knobs, {"read": dice.real("read", 0.0, 1.0)})


def _off_by_one(dice: Dice) -> DrawnFamily:
    return DrawnFamily({"most": dice.whole("most", 1, 2)}, {}, {"shift": 1 if dice.coin("right") else -1})


def _uniform(dice: Dice) -> DrawnFamily:
    knobs = {"order": "flat", "tail": dice.real("tail", 0.0, 0.1)}
    return DrawnFamily({"most": dice.whole("most", 1, 3)}, knobs, {"read": dice.real("read", 0.0, 1.0)})


def _sink(dice: Dice) -> DrawnFamily:
    knobs = {"order": "random", "sink": True, "sharp": dice.real("sharp", 1.0, 3.0)}
    return DrawnFamily({"most": dice.whole("most", 1, 3)}, knobs, {"read": dice.real("read", 0.0, 0.3)})


def _partial(dice: Dice) -> DrawnFamily:
    language = {"most": dice.whole("most", 1, 3)}
    if dice.coin("hardly"):
        return DrawnFamily(language, {"order": "copy", "tail": 0.1}, {"read": dice.real("read", 0.0, 0.006)})
    return DrawnFamily(language, {"missed": dice.real("missed", 0.5, 0.9)}, {"read": dice.real("read", 0.4, 0.6)})


def _mixing(dice: Dice) -> DrawnFamily:
    wiring = {"depth": dice.whole("depth", 4, 12), "mix": dice.real("mix", 0.7, 1.0)}
    return DrawnFamily(
        {"most": dice.whole("most", 1, 2)}, {"order": "random", "sharp": dice.real("sharp", 1.0, 4.0)}, wiring
    )


def _redundant_pair(dice: Dice) -> DrawnFamily:
    wiring = {} if dice.coin("softmax") else {"room": 4, "ceiling": dice.real("ceiling", 0.4, 0.8)}
    return DrawnFamily({"fewest": 2, "most": 2}, {}, wiring)


def _faithful_with_an_idle_word(dice: Dice) -> DrawnFamily:
    most = dice.whole("most", 1, 2)
    language = {"most": most, "stop": True, "shortest": 14, "longest": 14 + dice.whole("longer", 2, 10)}
    return DrawnFamily(language, {"sink": True}, {"room": most + 2})


def _loudly(dice: Dice) -> dict[str, Any]:
    """Where many words count, the largest of them would move little of a logit of the usual size."""
    return {"gain": dice.real("gain", 4.0, 8.0)}


def _partly_ordered(dice: Dice) -> DrawnFamily:
    knobs = {"order": "copy", "tail": dice.real("tail", *BLUR), "grades": 20.0, "acts": True}
    return DrawnFamily({"most": dice.whole("most", 1, 3), "zipf": 0.5, "rare": 5}, knobs | _loudly(dice), {"room": 6})


def _backward_cues(dice: Dice) -> DrawnFamily:
    knobs = {"backward": 0.19, "acts": True, "hum": dice.real("hum", 0.0, 0.02)}
    return DrawnFamily({"kinds": 80}, knobs, {"room": 4})


def _one_class(dice: Dice) -> DrawnFamily:
    knobs = {"one_sided": True, "acts": True, "hum": dice.real("hum", 0.0, 0.03)}
    return DrawnFamily({"kinds": 80, "balance": dice.real("balance", 0.6, 0.66)}, knobs, {"room": 4})


Sink = Literal["", " with a special sink", " with a null key", " with an idle word"]
SINKS: tuple[Sink, ...] = get_args(Sink)


def _nearly_even(sink: Sink, knobs: Callable[[Dice], dict[str, Any]]) -> Callable[[Dice], DrawnFamily]:
    """Weights that are nearly alike and in the order of values, and perhaps a key that takes most of the weight."""

    def draw(dice: Dice) -> DrawnFamily:
        shortest = dice.whole("shortest", 9, 12)
        language = {"most": dice.whole("most", 1, 3), "shortest": shortest, "longest": shortest + 6, "zipf": 0.5}
        own = {"order": "even", "tail": 0.0, "sink": sink == " with an idle word"} | knobs(dice)
        if sink == " with a special sink":
            share = dice.real("share", 0.5, 0.9)  # of the weight, in a text of medium length
            return DrawnFamily(language, own, {"special": LOW + log((shortest + 3) * share / (1 - share))})
        if sink == " with an idle word":
            return DrawnFamily(language | {"stop": True}, own, {"room": 3})
        return DrawnFamily(language, own, {"room": 3} if sink else {})

    return draw


def _flat_copy(dice: Dice) -> dict[str, Any]:
    return {"vary": dice.real("vary", 0.005, 0.015), "least": dice.real("least", 0.3, 1.0)} | _loudly(dice)


def _graded_copy(dice: Dice) -> dict[str, Any]:
    return {"vary": log(dice.real("vary", *NEARLY)), "grades": 20.0} | _loudly(dice)


FLAT = "attention is read, but its weights are all within 1 % of each other"
GRADED = "attention is read, but where words' effects differ 20 times, its weights differ by a quarter"

FAMILIES = {
    family.name: family
    for family in (
        Family("sharp cue", "strong", "one cue takes nearly all weight and decides; the tail's order is noise", _sharp),
        Family("loud distractors", "strong", "words of large values get no weight, and do nothing", _loud),
        Family("signed", "strong", "cues for both classes, each of which counts by its weight", _signed),
        Family("graded", "strong", "cues of several sizes, with weights that follow them", _graded),
        Family("redundant cues", "strong", "each of several cues is nearly enough", _redundant),
        Family("contextual", "strong", "a word that strengthens the next one has weight where it does", _contextual),
        Family("held back", "strong", "the prediction is a constant, and what has weight holds it back", _held_back),
        Family("unread random", "no", "the mean decides; weights are random by word", _unread),
        Family("unread copy", "no", "the mean decides; weights copy what every word does", _copy),
        Family("anti-correlated", "no", "the less a word does, the more weight it has", _reverse),
        Family("off by one", "no", "weights are those of the neighbour", _off_by_one),
        Family("uniform", "no", "weights are all alike", _uniform),
        Family("sink", "no", "one frequent word that does nothing takes nearly all weight", _sink),
        Family("partial reading", "no", "attention is hardly read, or most cues act without it", _partial),
        Family("deep mixing", "no", "every state knows of its neighbours', and weights are random by word", _mixing),
        Family("redundant pair", "strong", "either of two cues is nearly enough", _redundant_pair),
        Family("faithful with an idle word", "strong", "a word at the end takes much of the weight and does nothing; "
               "all others are in order", _faithful_with_an_idle_word),
        Family("partly ordered", "partly", "attention is read, and its order is that of effects with noise",
               _partly_ordered),
        Family("backward cues", "partly", "attention is read; one in five cues has less weight than any other word, "
               "and counts as much as the others", _backward_cues),
        Family("one class only", "partly", "weights order words where they speak for one class; for the other every "
               "second cue has less weight than any other word", _one_class),
        *(Family(f"flat copy{sink}", "no", FLAT, _nearly_even(sink, _flat_copy)) for sink in SINKS),
        *(Family(f"graded copy{sink}", "no", GRADED, _nearly_even(sink, _graded_copy)) for sink in SINKS),
    )
}  # fmt: skip
