"""Replies: what the page is told."""

from typing import Any, Literal

from pydantic import BaseModel

from exegete.wings.explorer.messages import RowWeights

Classes = dict[str, float]  # probabilities by class


class OfferedMethod(BaseModel):
    """An importance that can be asked for."""

    name: str
    label: str
    cheap: bool
    milliseconds: float | None = None  # for a text of ten words, as measured here; None: not measured yet


class ServedModel(BaseModel):
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
    writes: bool = False  # whether it translates: then its output has words, each of which can be explained
    methods: list[OfferedMethod] = []
    source: str | None = None  # as on the command line; None: the default audit's
    run: bool = False  # whether it is a run, with texts and a scorecard
    answer: str = ""  # what its audit answered, a sentence


class WrittenWords(BaseModel):
    """What a translator writes, always the likeliest next word; nothing, where a model predicts a class."""

    pieces: list[str]  # steps, in their order; the end symbol last, unless the text was cut
    text: str


class ExplainedText(BaseModel):
    """What `exegete explain --json` prints, and its heat map."""

    explanation: dict[str, Any]
    html: str


class Differed(BaseModel):
    """What `exegete explain --diff … --json` prints, and both texts side by side."""

    difference: dict[str, Any]
    html: str


class OpenedSite(BaseModel):
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
    rows: list[RowWeights] = []  # the rows that were rewritten
    openings: int


class Outcomes(BaseModel):
    """What permutations did, draw by draw."""

    tvd: list[float]
    jsd: list[float]
    flipped: list[bool]
    median: float  # of the TVD


class ServedRun(BaseModel):
    """A run."""

    run: int
    name: str
    split: str
    cells: list[str]  # its models, in words
    report: bool  # whether its report can be opened


class ServedCell(BaseModel):
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
    """Some of the texts that match."""

    cell: ServedCell
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
    """Some of the words that occur often enough."""

    cell: ServedCell
    total: int  # that occur often enough
    rows: list[WordRow]


class Card(BaseModel):
    """The scorecard of a run: what `exegete audit --json` has of every test, and the report's card."""

    run: int
    name: str
    answer: str
    untested: list[str]
    tests: list[
        dict[str, Any]
    ]  # with `of`, the model in words, a `label`, a `sign`, an `outcome`, and the report's `chapter`
    html: str
    report: bool


class Wrong(BaseModel):
    """One sentence: what is wrong and what to do."""

    error: str
