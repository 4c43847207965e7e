"""Settings that every task understands; a source adds its own in a subclass."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from exegete.base.errors import UsageError, unknown
from exegete.base.names import Spec
from exegete.tasks.example import Task
from exegete.tasks.planting import Planting, PlantKind
from exegete.tasks.tokenizers import TOKENIZERS

T = TypeVar("T", bound=Sized)


@dataclass(frozen=True)
class LengthFilter:
    """Keep the examples of one split that have `minimum` to `maximum` words, both included.

    `legacy` is the filter of Jain & Wallace's code: strict inequalities, and a bound that is not given is the extreme
    observed in that split. So the shortest and the longest texts of every split go, whether anyone asked for it or not.
    """

    minimum: int | None = None
    maximum: int | None = None
    legacy: bool = False

    def __call__(self, examples: Sequence[T]) -> tuple[list[T], int]:
        """The examples that stay, in order, and how many were dropped."""
        lengths = [len(e) for e in examples]
        low, high = self.bounds(lengths)
        kept = [e for e, length in zip(examples, lengths, strict=True) if low <= length <= high]
        return kept, len(examples) - len(kept)

    def bounds(self, lengths: Iterable[int]) -> tuple[float, float]:
        """The smallest and the largest length that stays."""
        if not self.legacy:
            return self.minimum or 0, float("inf") if self.maximum is None else self.maximum
        every = list(lengths)
        shortest, longest = min(every, default=0), max(every, default=0)
        low = shortest if self.minimum is None else self.minimum
        high = longest if self.maximum is None else self.maximum
        return low + 1, high - 1


AtLeastOne = Annotated[int, Field(ge=1)]


def _known_tokenizer(name: str) -> str:
    if name not in TOKENIZERS:
        raise unknown("tokenizer", name, TOKENIZERS)
    return name


class SampleSettings(BaseModel):
    """How many examples of every split are taken, whatever the kind of task."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    train_limit: AtLeastOne | None = None
    dev_limit: AtLeastOne | None = None
    test_limit: AtLeastOne | None = None
    split_seed: int = 0  # of splits and limits by hash, and of planting

    @property
    def limits(self) -> dict[str, int | None]:
        """The largest size of every split."""
        return {"train": self.train_limit, "dev": self.dev_limit, "test": self.test_limit}


class TaskSettings(SampleSettings):
    """How raw texts become examples. A source is a subclass with its own settings and a `task` method."""

    tokenizer: Annotated[str, AfterValidator(_known_tokenizer)] = "whitespace"
    lower: bool = False
    min_df: AtLeastOne = 1  # words in fewer training texts are unknown words
    min_length: AtLeastOne | None = None  # in words, included
    max_length: AtLeastOne | None = None
    legacy_length: bool = False  # Jain & Wallace's filter, which drops the extremes of every split
    planted: PlantKind | None = None  # made-up words that decide the label
    planted_share: float = Field(0.2, gt=0, le=0.5)  # of train and dev

    @model_validator(mode="after")
    def _some_length_is_left(self) -> Self:
        low, high = self.min_length, self.max_length
        if low is not None and high is not None and low > high:
            raise UsageError(f"min_length={low} is above max_length={high}: no text could stay")
        return self

    @property
    def explained(self) -> int:
        """Which text importances are about: the first, unless a source of pairs is asked for the other."""
        return 0

    @property
    def split_column(self) -> str | None:
        """The column that names the split of every row, if there is one."""
        return None

    @property
    def lengths(self) -> LengthFilter:
        """The length filter that these settings ask for."""
        return LengthFilter(self.min_length, self.max_length, self.legacy_length)

    @property
    def planting(self) -> Planting | None:
        """The shortcut that these settings ask for."""
        return Planting(self.planted, self.planted_share, self.split_seed) if self.planted else None


class Source(TaskSettings, ABC):
    """Settings of a kind of source, and how to read it."""

    @abstractmethod
    def task(self, spec: Spec) -> Task:
        """Read the source that `spec` names."""


class PairSource(Source):
    """Settings of a source of two texts, a passage (or premise) and a question (or hypothesis) about it."""

    explain: Literal["passage", "question"] = "passage"  # which of the two importances are about

    @property
    def explained(self) -> int:
        """The passage, unless the question is asked for."""
        return int(self.explain == "question")


def check_pair(settings: Any) -> None:
    """A source of columns whose question is to be explained must have one."""
    if settings.explained and not settings.question:
        raise UsageError("explain=question is for pairs of texts: name the column of questions with question=COLUMN")
    if settings.question and settings.question == settings.text:
        raise UsageError(f"text and question are both the column '{settings.text}': name two columns")
