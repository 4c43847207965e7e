"""Lab: a model and the texts that were opened last; what the page shows, and what `exegete.lab` gives in Python.

A text is opened once for every site: dragging a weight decodes, and never encodes again (`openings` counts).
"""

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from exegete.plugins import (
    IMPORTANCES,
    STUDY,
    Checkpoint,
    Example,
    Explanation,
    Of,
    Paired,
    Progress,
    SelfAttentive,
    TextInput,
    TextQuestion,
    Trust,
    UsageError,
    Wanted,
    Writing,
    at_step,
    check_parts,
    classes_of,
    example_of,
    methods_of,
    one_thread,
    refusal,
    silent,
    step_of,
    subject,
    text_parts,
    translate,
)
from exegete.plugins import (
    MANIFEST as MANIFEST,
)
from exegete.plugins import (
    ModelGiven as Model,
)
from exegete.plugins import (
    explain_question as explained,
)
from exegete.wings.explorer.attack import Attack, attack
from exegete.wings.explorer.messages import MATRIX, PIECES, ROWS, WEIGHTS, WORDS

TEXTS = 64  # that stay opened
CHEAP = ("attention", "attention_x_gradient", "attention_x_norm", "gradient", "gradient_x_input", "rollout")


class Lab:
    """A model to be asked about texts, and about texts under other weights."""

    def __init__(self, checkpoint: Checkpoint, trust: Trust | None = None) -> None:
        self.checkpoint, self.trust = checkpoint, trust or Trust()
        self.openings = 0
        self._opened: OrderedDict[tuple[tuple[str, ...], str | None, int], Attack] = OrderedDict()

    @property
    def name(self) -> str:
        """What it is, and on what it was trained."""
        return f"{self.checkpoint.model.spec}, trained on {self.checkpoint.task}"

    @property
    def pair(self) -> bool:
        """Whether it reads two texts."""
        return isinstance(self.checkpoint.model, Paired) and not self.writes

    @property
    def writes(self) -> bool:
        """Whether it writes texts, word by word."""
        return isinstance(self.checkpoint.model, Writing)

    @property
    def layers(self) -> int:
        """Layers of self-attention."""
        model = self.checkpoint.model
        return len(model.self_attention) if isinstance(model, SelfAttentive) else 0

    @cached_property
    def methods(self) -> dict[str, bool]:
        """The importances that this model allows, and whether each is cheap: a pass or two."""
        model = self.checkpoint.model
        asked = model.as_classes() if isinstance(model, Writing) else model
        allowed = [name for name in methods_of(None, "logit") if refusal(IMPORTANCES.make(name), asked) is None]
        return {name: name.partition(":")[0] in CHEAP for name in allowed}

    def explain(
        self,
        text: TextInput,
        methods: Sequence[str] | None = None,
        target: Wanted = None,
        of: Of = "logit",
        progress: Progress = silent,
    ) -> Explanation:
        """As `exegete.explain`; without methods, by those that are cheap."""
        parts = self._parts(text)
        wanted = [name for name, cheap in self.methods.items() if cheap] if methods is None else methods
        classes, step = classes_of(target, self.checkpoint), step_of(target, self.checkpoint)
        asked = TextQuestion(self.checkpoint, methods_of(wanted, of), *classes, of, self.trust, progress, step=step)
        with one_thread():
            return explained(asked, parts)

    def written(self, text: TextInput) -> tuple[str, ...]:
        """What a translator writes for a text, in pieces; nothing, where a model predicts a class."""
        return translate(self.checkpoint, self._parts(text)[0]) if self.writes else ()

    def attack(self, text: TextInput, site: str | None = None, step: int = 1) -> Attack:
        """A text opened at a site, the readout unless one is named; opened before, it is not opened again."""
        key = (self._parts(text), site, step)
        if key not in self._opened:
            self._opened[key] = self._open(*key)
            self.openings += 1
        self._opened.move_to_end(key)
        if len(self._opened) > TEXTS:
            self._opened.popitem(last=False)
        return self._opened[key]

    def _open(self, parts: tuple[str, ...], site: str | None, step: int) -> Attack:
        checkpoint, example = self.checkpoint, example_of(self.checkpoint, parts)
        if site not in (None, checkpoint.model.sites[-1]):
            self._check_matrix(example)
        with one_thread():
            if self.writes:
                checkpoint, example = at_step(checkpoint, parts[0], translate(checkpoint, parts[0]), step)
            found = attack(checkpoint.classifier, example, site)
        if found.queries > 1:
            self._check_matrix(example)
        if len(found.own) > ROWS or found.own.numel() > WEIGHTS:
            raise UsageError(
                f"this text has {found.own.numel():,} weights in {len(found.own):,} rows at '{found.site}', and "
                f"{WEIGHTS:,} in {ROWS:,} can be taken in hand: shorten the text"
            )
        return found

    def _check_matrix(self, example: Example) -> None:
        if len(example.all_words) > MATRIX:
            raise UsageError(f"a matrix of weights is shown for texts of up to {MATRIX} words: shorten the text")

    def _parts(self, text: TextInput) -> tuple[str, ...]:
        """A text that this model can read, within limits."""
        parts = text_parts(text)
        check_parts(parts, self.checkpoint)
        most = MATRIX if self.writes else WORDS  # who writes, writes about as many
        example = example_of(self.checkpoint, parts)
        if len(example.all_words) > most:
            raise UsageError(f"the explorer reads texts of up to {most} words: shorten the text")
        if (pieces := int(self.checkpoint.model.collate([example]).cost.sum())) > PIECES:
            raise UsageError(
                f"this text has {pieces:,} pieces, and the explorer reads up to {PIECES:,}: shorten its long words"
            )
        return parts


def open_lab(model: Model = None, progress: Progress = silent) -> Lab:
    """A lab for a checkpoint, its folder, a run (its first model), or the default audit's model."""
    if isinstance(model, str | Path) and any((Path(model) / name).is_file() for name in (MANIFEST, STUDY)):
        return Lab(*subject(None, model, progress))
    return Lab(*subject(model, None, progress))
