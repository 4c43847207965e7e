"""Messages: what the page asks and what it is told, checked on the way in; limits are here, so that one list has them.

A model is a number: the place of its name on the command line. No name of a file ever comes from a browser.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

CHARACTERS = 20_000  # of a text
ROWS, KEYS = 1_024, 2_048  # rows of weights that may be changed, and their length
DRAWS = 100  # permutations that may be asked for together

Weight = Annotated[FiniteFloat, Field(ge=0, le=1)]
Classes = dict[str, float]  # probabilities by class


class Message(BaseModel):
    """Nothing but what is named."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Row(Message):
    """Weights of one row of a site: of a query of a head, rows being counted head by head."""

    row: int = Field(ge=0, lt=ROWS)
    weights: list[Weight] = Field(max_length=KEYS)


class Text(Message):
    """A text for a model; for a model of pairs with its question."""

    model: int = Field(ge=0, lt=100, description="its place on the command line")
    text: str = Field(min_length=1, max_length=CHARACTERS)
    question: str | None = Field(default=None, max_length=CHARACTERS)


class Explain(Text):
    """Which words of a text speak for its prediction?"""

    methods: list[Annotated[str, Field(max_length=100)]] | None = Field(
        default=None, max_length=30, description="importances with settings; those that cost little unless given"
    )
    target: str | None = Field(default=None, max_length=200, description="the class; the predicted one unless given")
    contrast: str | None = Field(default=None, max_length=200, description="the class that it is set against")
    of: Literal["logit", "probability"] = "logit"
    by: Literal["word", "sentence"] = "word"


class Open(Text):
    """A text, opened at a site: the readout, unless one is named."""

    site: str | None = Field(default=None, max_length=100)


class Weigh(Open):
    """The same under other weights: rows that are not given stay the model's own."""

    rows: list[Row] = Field(default=[], max_length=ROWS)


class Rewrite(Weigh):
    """Change some rows, from what they are now."""

    how: Literal["uniform", "reverse", "permute", "remove", "without", "zero"]
    over: list[Annotated[int, Field(ge=0, lt=ROWS)]] | None = Field(
        default=None, max_length=ROWS, description="these rows; all unless given"
    )
    count: int = Field(default=1, ge=1, le=KEYS, description="remove: how many of the highest weights")
    key: int = Field(default=0, ge=0, lt=KEYS, description="without: the key that gets no weight")
    draw: int = Field(default=0, ge=0, lt=10_000, description="permute: which draw")


class Permute(Open):
    """What random orders of the model's own weights do to the prediction: draws as in the audit."""

    first: int = Field(default=0, ge=0, lt=10_000)
    count: int = Field(default=DRAWS, ge=1, le=DRAWS)


class Adversary(Open):
    """Search weights as far as possible from the model's own under which it predicts the same."""

    epsilon: Annotated[FiniteFloat, Field(ge=0, le=1)] = 0.01
    steps: int = Field(default=500, ge=1, le=2_000)
    count: int = Field(default=5, ge=1, le=10)
    seed: int = Field(default=0, ge=0, lt=2**31)


class Method(BaseModel):
    """An importance that can be asked for."""

    name: str
    label: str
    cheap: bool
    milliseconds: float | None = None  # for a text of ten words, as measured here; None: not measured yet


class Model(BaseModel):
    """A model of the command line, and how far it is."""

    model: int
    name: str
    state: Literal["loading", "ready", "failed"]
    said: str = ""  # how far it is, or what is wrong
    done: int = 0
    total: int = 0
    labels: list[str] = []
    sites: list[str] = []
    pair: bool = False
    methods: list[Method] = []
    source: str | None = None  # as on the command line; None: the default audit's


class Explained(BaseModel):
    """What `exegete explain --json` prints, and its heat map."""

    explanation: dict[str, Any]
    html: str


class Opened(BaseModel):
    """The attention of one site for one text."""

    site: str
    keys: list[str]  # what is attended to
    queries: list[str]  # what attends; one without a name where one query is read
    heads: int
    rows: list[list[float]]  # head by head, query by query: the model's own weights of the keys
    movable: list[bool]  # whether a key's weight may be exchanged for another's
    pools: bool  # encoded once and decoded under any weights; else every weighting is a whole pass
    gated: bool  # rows need not sum to 1
    probabilities: Classes
    prediction: str
    openings: int  # texts that this worker has opened so far


class Weighed(BaseModel):
    """What a model predicts under other weights."""

    probabilities: Classes
    prediction: str
    flipped: bool
    tvd: float  # of the predictions
    jsd: float | None  # of the weights, the mean over rows; None where a row has another sum than the model's own
    frozen: Classes | None = None  # the same with the weights of all other sites held; None: there are none after it
    rows: list[Row] = []  # the rows that were rewritten
    openings: int


class Outcomes(BaseModel):
    """What permutations did, draw by draw."""

    tvd: list[float]
    jsd: list[float]
    flipped: list[bool]
    median: float  # of the TVD


class Wrong(BaseModel):
    """One sentence: what is wrong and what to do."""

    error: str
