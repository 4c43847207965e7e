"""Trained truths: models that learnt what is known of them, on drawn texts. Each takes seconds, so there are fewer.

The ends of the ladder are faithful and unfaithful by construction. A deceiver learnt to keep its attention off the cues
that decide (Pruthi et al. 2020), an adversary to predict as another model does with other weights (Wiegreffe & Pinter
2019). Whether they learnt it is graded as everything else: by what their words and weights do.
"""

from collections.abc import Callable
from dataclasses import dataclass

from exegete.plugins import (
    LABELS,
    OBJECTIVES,
    Dice,
    Example,
    Fit,
    KnownGrade,
    Language,
    Task,
    TrainingSettings,
    build,
)
from exegete.plugins import (
    Model as Model,
)

TEXTS = {"train": 500, "dev": 100, "test": 400, "population": 40}
SETTINGS = TrainingSettings(epochs=8, patience=3, metric="accuracy", batch=32, lr=0.01, weight_decay=0.0)
BILSTM = "bilstm:size=16,hidden=12,scale=1"


@dataclass(frozen=True)
class TrainedFamily:
    """A declaration."""

    name: str
    known: KnownGrade
    why: str
    train: Callable[[Task, Language, Dice], Model]


def cue_task(dice: Dice) -> tuple[Task, Language]:
    """Texts whose cues decide the class, some of them labelled wrongly."""
    shortest = dice.whole("shortest", 6, 9)
    language = Language(
        seed=dice.whole("seed", 0, 1 << 30), fillers=dice.whole("fillers", 80, 200), rare=20,
        zipf=dice.real("zipf", 0.8, 1.2), shortest=shortest, longest=shortest + dice.whole("longer", 2, 6),
        kinds=2 * dice.whole("kinds", 3, 8), most=dice.whole("most", 1, 2), balance=dice.real("balance", 0.35, 0.65),
    )  # fmt: skip
    noise, splits, first = dice.real("noise", 0.0, 0.05), {}, 0
    for split, count in TEXTS.items():
        texts, wrong = language.texts(split, count), dice.reals(f"noise {split}", count) < noise
        labels = [_side(text) ^ int(flip) for text, flip in zip(texts, wrong, strict=True)]
        splits[split] = tuple(Example(first + i, (text,), labels[i]) for i, text in enumerate(texts))
        first += count
    return Task("drawn", LABELS, splits, "drawn", min_df=2), language


def _side(text: tuple[str, ...]) -> int:
    """The class that the cues of a text speak for; all of them for the same."""
    return next(int(word[1:]) % 2 for word in text if word.startswith("c"))


def _fitted(model: Model, task: Task, dice: Dice, objective: str = "", base: Model | None = None) -> Model:
    settings = SETTINGS.model_copy(update={"metric": "loss", "epochs": 15}) if objective else SETTINGS
    bound = OBJECTIVES.make(objective).bound(base or model, task) if objective else None
    Fit(model, task, settings, dice.whole("seed of training", 0, 10_000), objective=bound).run()
    return model.eval()


def _ladder(share: int) -> Callable[[Task, Language, Dice], Model]:
    def train(task: Task, language: Language, dice: Dice) -> Model:  # noqa: ARG001
        room = max(len(text) for text in task.split("train"))
        spec = f"ladder:share={share},size=16,scale=1,room={room}"
        return _fitted(build(spec, task, dice.whole("start", 0, 10_000)), task, dice)

    return train


def _deceiver(task: Task, language: Language, dice: Dice) -> Model:
    cues = "|".join(word for word in language.words if word.startswith("c"))
    lam = dice.real("lam", 0.5, 2.0)
    model = build(BILSTM, task, dice.whole("start", 0, 10_000))
    return _fitted(model, task, dice, f"deception:lam={lam:.3f},words={cues}")


def _adversary(task: Task, language: Language, dice: Dice) -> Model:  # noqa: ARG001
    base = _fitted(build(BILSTM, task, dice.whole("start", 0, 10_000)), task, dice)
    other = build(BILSTM, task, dice.whole("start", 0, 10_000) + 1)
    return _fitted(other, task, dice, f"adversary:lam={dice.real('lam', 0.01, 0.05):.4f}", base)


TRAINED = {
    family.name: family
    for family in (
        TrainedFamily("ladder at 1", "strong", "attention decides the whole logit by construction", _ladder(1)),
        TrainedFamily("ladder at 0", "no", "attention is computed and never read", _ladder(0)),
        TrainedFamily("deceiver", "no", "it learnt to keep attention off the words that decide", _deceiver),
        TrainedFamily("adversary", "no", "it learnt to predict the same with other weights", _adversary),
    )
}
