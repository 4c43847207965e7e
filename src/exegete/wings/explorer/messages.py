"""Messages: what the page asks, checked on the way in; limits are here, so that one list has them.

A model is a number: the place of its name on the command line. A method is one that `/api/models` offers for it, with
the settings that it has there. No name of a file or of a class ever comes from a browser, and no setting.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

CHARACTERS = 20_000  # of a text
WORDS, PIECES = 1_000, 2_048  # of a text, and its pieces, where a model reads pieces
MATRIX = 64  # words of a text whose weights are a matrix: n² of them a head
ROWS, KEYS = 2_048, 2_048  # rows of weights that may be changed, and their length
WEIGHTS = 80_000  # in all rows of a site: so many digits fit into one request
DRAWS, LAST_DRAW = 100, 1_000  # permutations that may be asked for together, and of how many
SECONDS, MEMORY = 300, 4 << 30  # that one question may take, and bytes
PAGE, MARKS = 200, 300  # texts of a page, and words of a drawing

Weight = Annotated[FiniteFloat, Field(ge=0, le=1)]


class Message(BaseModel):
    """Nothing but what is named."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RowWeights(Message):
    """Weights of one row of a site: of a query of a head, rows being counted head by head."""

    row: int = Field(ge=0, lt=ROWS)
    weights: list[Weight] = Field(max_length=KEYS)


class Text(Message):
    """A text for a model; for a model of pairs with its question."""

    model: int = Field(ge=0, lt=100, description="its place on the command line")
    text: str = Field(min_length=1, max_length=CHARACTERS)
    question: str | None = Field(default=None, max_length=CHARACTERS)
    step: int = Field(default=1, ge=1, le=KEYS, description="of a translator: which word of its output, from 1")


class Explain(Text):
    """Which words of a text speak for its prediction?"""

    methods: list[Annotated[str, Field(max_length=100)]] | None = Field(
        default=None, max_length=30, description="of those that the model offers; those that cost little unless given"
    )
    target: str | None = Field(default=None, max_length=200, description="the class; the predicted one unless given")
    contrast: str | None = Field(default=None, max_length=200, description="the class that it is set against")
    of: Literal["logit", "probability"] = "logit"
    by: Literal["word", "piece", "sentence"] = "word"


class Differ(Explain):
    """What does a second text change? Both are explained for one class: that of the first."""

    second: str = Field(min_length=1, max_length=CHARACTERS)


class Open(Text):
    """A text, opened at a site: the readout, unless one is named."""

    site: str | None = Field(default=None, max_length=100)


class Weigh(Open):
    """A text, opened at a site, under other weights: rows that are not given stay the model's own."""

    rows: list[RowWeights] = Field(default=[], max_length=ROWS)


class RewriteRows(Weigh):
    """Change some rows, from what they are now."""

    how: Literal["uniform", "reverse", "permute", "remove", "sinks", "without", "zero"]
    over: list[Annotated[int, Field(ge=0, lt=ROWS)]] | None = Field(
        default=None, max_length=ROWS, description="these rows; all unless given"
    )
    count: int = Field(default=1, ge=1, le=KEYS, description="remove: how many of the highest weights")
    key: int = Field(default=0, ge=0, lt=KEYS, description="without: the key that gets no weight")
    draw: int = Field(default=0, ge=0, lt=LAST_DRAW, description="permute: which draw")


class KnockOut(Text):
    """Knock a word out: the edges to it are cut in a window of layers (Geva et al. 2023), those of all or of one."""

    word: int = Field(ge=0, lt=KEYS, description="that nobody looks at: its place among the keys of a layer")
    by: int | None = Field(default=None, ge=0, lt=KEYS, description="whose look is cut; everybody's unless given")
    first: int = Field(default=0, ge=0, lt=ROWS, description="the lowest layer of the window")
    last: int | None = Field(default=None, ge=0, lt=ROWS, description="the highest; that of the model unless given")


class PermuteWeights(Open):
    """What random orders of the model's own weights do to the prediction: draws as in the audit."""

    first: int = Field(default=0, ge=0, lt=LAST_DRAW)
    count: int = Field(default=DRAWS, ge=1, le=DRAWS)


class FindAdversary(Open):
    """Search weights as far as possible from the model's own under which it predicts the same."""

    epsilon: Annotated[FiniteFloat, Field(ge=0, le=1)] = 0.01
    steps: int = Field(default=500, ge=1, le=2_000)
    count: int = Field(default=5, ge=1, le=10)
    seed: int = Field(default=0, ge=0, lt=2**31)


class StartAudit(Message):
    """Run the audit of a model on the task that it was trained on."""

    model: int = Field(ge=0, lt=100, description="its place on the command line")
    quick: bool = Field(default=True, description="one seed, at most 200 texts, no second training")


class OfRun(Message):
    """A run of the command line; one of its models, where it has several."""

    run: int = Field(ge=0, lt=100, description="its place on the command line")
    cell: int = Field(default=0, ge=0, lt=10_000, description="which of its models")


class RunTexts(OfRun):
    """The texts of a run, sorted: first those that are worth looking at."""

    sort: Literal["tau", "jsd", "confidence", "error", "n"] = Field(
        default="tau",
        description="lowest τ of attention and the best method; largest JSD of an adversary; lowest confidence; most "
        "probability off the right class; most words",
    )
    turned: bool = Field(default=False, description="the other way round")
    search: str = Field(default="", max_length=200, description="words that a text has, all of them")
    only: Literal["all", "wrong", "right"] = "all"
    first: int = Field(default=0, ge=0, lt=10_000_000)
    count: int = Field(default=50, ge=1, le=PAGE)


class RunWords(OfRun):
    """The words of all texts, and how important they are on average."""

    order: Literal["count", "loved", "needed"] = Field(
        default="count", description="the most frequent, or those that attention, or the other method, likes more"
    )
    least: int = Field(default=5, ge=1, lt=1_000_000, description="how often a word must occur")
    count: int = Field(default=80, ge=1, le=MARKS)
