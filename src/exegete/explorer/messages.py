"""Messages: what the page asks and what it is told, checked on the way in; limits are here, so that one list has them.

A model is a number: the place of its name on the command line. No name of a file ever comes from a browser.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

CHARACTERS = 20_000  # of a text
ROWS, KEYS = 1_024, 2_048  # rows of weights that may be changed, and their length
DRAWS = 100  # permutations that may be asked for together
PAGE, MARKS = 200, 300  # texts of a page, and words of a drawing

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

    how: Literal["uniform", "reverse", "permute", "remove", "sinks", "without", "zero"]
    over: list[Annotated[int, Field(ge=0, lt=ROWS)]] | None = Field(
        default=None, max_length=ROWS, description="these rows; all unless given"
    )
    count: int = Field(default=1, ge=1, le=KEYS, description="remove: how many of the highest weights")
    key: int = Field(default=0, ge=0, lt=KEYS, description="without: the key that gets no weight")
    draw: int = Field(default=0, ge=0, lt=10_000, description="permute: which draw")


class Cut(Text):
    """Knock a word out: the edges to it are cut in a window of layers (Geva et al. 2023), those of all or of one."""

    word: int = Field(ge=0, lt=KEYS, description="that nobody looks at: its place among the keys of a layer")
    by: int | None = Field(default=None, ge=0, lt=KEYS, description="whose look is cut; everybody's unless given")
    first: int = Field(default=0, ge=0, lt=ROWS, description="the lowest layer of the window")
    last: int | None = Field(default=None, ge=0, lt=ROWS, description="the highest; that of the model unless given")


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


class Audit(Message):
    """Run the audit of a model on the task that it was trained on."""

    model: int = Field(ge=0, lt=100, description="its place on the command line")
    quick: bool = Field(default=True, description="one seed, at most 200 texts, no second training")


class Run(Message):
    """A run of the command line; one of its models, where it has several."""

    run: int = Field(ge=0, lt=100, description="its place on the command line")
    cell: int = Field(default=0, ge=0, lt=10_000, description="which of its models")


class Texts(Run):
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


class Words(Run):
    """The words of all texts, and how important they are on average."""

    order: Literal["count", "loved", "needed"] = Field(
        default="count", description="the most frequent, or those that attention, or the other method, likes more"
    )
    least: int = Field(default=5, ge=1, lt=1_000_000, description="how often a word must occur")
    count: int = Field(default=80, ge=1, le=MARKS)


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
    layers: int = 0  # of self-attention, in which words can be knocked out
    pair: bool = False
    methods: list[Method] = []
    source: str | None = None  # as on the command line; None: the default audit's
    run: bool = False  # whether it is a run, with texts and a scorecard


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


class Read(BaseModel):
    """A run."""

    run: int
    name: str
    split: str
    cells: list[str]  # its models, in words
    report: bool  # whether its report can be opened


class Cell(BaseModel):
    """One model of a run, and what is known of its texts."""

    cell: int
    label: str
    texts: int
    scored: int  # those that both attention and the method scored
    searched: int  # those with an adversary
    method: str | None  # the best one that the audit held attention against; None: there is none
    method_label: str | None
    said: str = ""  # why not


class TextRow(BaseModel):
    """One text."""

    example: int
    text: str
    n: int  # words
    gold: str
    predicted: str
    wrong: bool
    confidence: float | None  # of the predicted class; None where there are too many classes to keep
    error: float | None  # 1 − the probability of the right class
    tau: float | None  # Kendall's τ-b of attention and the sizes of the method's scores
    top_attention: str | None
    top_other: str | None
    jsd: float | None  # the adversary's largest within ε


class TextPage(BaseModel):
    """Some of them."""

    cell: Cell
    total: int  # that match
    first: int
    rows: list[TextRow]


class WordRow(BaseModel):
    """One word: its mean importance, 1 being an even share of its text."""

    word: str
    count: int
    attention: float
    other: float


class WordPage(BaseModel):
    """Some of them."""

    cell: Cell
    total: int  # that occur often enough
    rows: list[WordRow]


class Card(BaseModel):
    """The scorecard of a run: what `exegete audit --json` has of every test, and the report's card."""

    run: int
    name: str
    answer: str
    untested: list[str]
    tests: list[dict[str, Any]]  # with `of`, the model in words, a `sign`, and the `chapter` of the report
    html: str
    report: bool


class Wrong(BaseModel):
    """One sentence: what is wrong and what to do."""

    error: str
