"""Settings of our own models: what a name like `bilstm:attention=dot,projection=sparsegen,lam=0.5` may say."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from exegete.base.catalogue import Catalogue, Entry
from exegete.tasks.example import Kind


class ProjectionSettings(BaseModel):
    """A projection and its dials."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    projection: Literal["softmax", "sparsemax", "sparsegen", "entmax", "gates"] = "softmax"
    lam: float | None = Field(None, lt=1)  # sparsegen's dial
    alpha: float | None = Field(None, gt=1, le=2)  # entmax's dial
    learned: bool = False  # entmax: learn alpha, starting from the given one

    @model_validator(mode="after")
    def _dials_fit(self) -> Self:
        if (self.lam is not None) != (self.projection == "sparsegen"):
            raise ValueError(
                "lam goes with projection=sparsegen, and sparsegen needs it: write projection=sparsegen,lam=0.5"
            )
        if (self.alpha is not None or self.learned) and self.projection != "entmax":
            raise ValueError("alpha and learned go with projection=entmax")
        return self

    @property
    def projection_settings(self) -> dict[str, float | bool]:
        """The dials of the projection."""
        if self.projection == "sparsegen" and self.lam is not None:
            return {"lam": self.lam}
        return {"alpha": self.alpha or 1.5, "learned": self.learned} if self.projection == "entmax" else {}


class ClassifierSettings(ProjectionSettings):
    """An encoder, an attention that pools its states, and a linear decoder (Jain & Wallace 2019, section 2).

    With attention=none the decoder reads a last state (models.last_state), and the projection is unused.
    """

    attention: Literal["tanh", "dot", "none"] = "tanh"
    hidden: int = Field(128, ge=1)
    vectors: str | None = None  # glove, glove-50, or a vector file; otherwise random embeddings
    size: int = Field(300, ge=1)  # of random embeddings; vectors have their own
    scale: float = Field(0.1, gt=0)  # standard deviation of random embeddings, and of words that the vectors lack
    trainable: bool = True  # whether training moves the embeddings
    wrap: bool = False  # start and end symbols that the encoder sees and attention doesn't (Jain & Wallace)
    outputs: Literal["one", "classes"] = "one"  # two classes: one sigmoid output, or one output per class


class BiLSTMSettings(ClassifierSettings):
    """States from a bidirectional LSTM, `hidden` per direction."""


class BiGRUSettings(ClassifierSettings):
    """States from a bidirectional GRU, `hidden` per direction."""


class RationaleSettings(BiLSTMSettings):
    """States from a bidirectional LSTM that reads only selected words; another one selects."""

    attention: Literal["tanh", "dot"] = "tanh"  # it decides where the classifier may look
    share: float = Field(0.2, gt=0, lt=1)  # of the words of a text that are selected, on average
    strength: float = Field(10.0, gt=0)  # ρ: what another share costs, times half its squared distance
    rate: float = Field(0.05, ge=0)  # of the Lagrange multiplier that holds the share; 0: only the square does


class AverageSettings(ClassifierSettings):
    """States from single words."""

    activation: Literal["tanh", "relu"] = "tanh"


class LadderSettings(ClassifierSettings):
    """Words that vote, each with the same strength, and gates that decide how much each vote counts."""

    attention: Literal["tanh", "dot"] = "tanh"
    projection: Literal["softmax"] = "softmax"  # unused: the gates and the null key are the projection
    share: float = Field(1.0, ge=0, le=1)  # of the logit that attention decides
    room: int = Field(64, ge=1)  # open gates that a text may have before words take weight from each other
    spread: float = Field(2.5, gt=0)  # share=0: deviation of scores over the vocabulary, for training won't move them
    wrap: bool = True  # the start symbol is the null key

    @model_validator(mode="after")
    def _has_a_null_key(self) -> "LadderSettings":
        if not self.wrap:
            raise ValueError("ladder needs wrap=true: the start symbol is its null key")
        return self


class FlatSettings(ClassifierSettings):
    """States of a whole document as Serrano & Smith (2019) encode it."""

    encoder: Literal["rnn", "conv", "none"] = "rnn"  # BiGRU; convolutions of widths 3 and 5; the embeddings themselves
    hidden: int = Field(50, ge=1)  # per direction, or filters per width


class HierarchicalSettings(FlatSettings):
    """One kind of encoder twice: over the words of each sentence, then over the sentences (Yang et al. 2016)."""

    attention: Literal["tanh", "dot"] = "tanh"

    @model_validator(mode="after")
    def _has_no_wrappers(self) -> "HierarchicalSettings":
        if self.wrap:
            raise ValueError("hierarchical has no start and end symbols: leave wrap out, or use flat:wrap=true")
        return self


class TransformerSettings(ClassifierSettings):
    """States from layers of self-attention, as Meister et al. (2021) train them."""

    attention: Literal["tanh", "dot"] = "dot"  # of the pool; self-attention is always a scaled dot product
    size: int = Field(128, ge=1)  # of random embeddings; of another size than hidden, they are mapped to it
    layers: int = Field(2, ge=1)
    heads: int = Field(1, ge=1)
    inner: int | None = Field(None, ge=1)  # size of the feed-forward layers; four times hidden unless given
    dropout: float = Field(0.1, ge=0, lt=1)  # of weights, of feed-forward layers and of what residuals add
    norm: Literal["pre", "post"] = "pre"  # layer norm before each part, or after its sum as in Vaswani et al. (2017)
    positions: bool = True  # add sinusoids; without, the order of words is invisible
    scaled: bool = True  # embeddings times √hidden before that, so that words outweigh their places
    every: bool = True  # the chosen projection in every layer; else only in the pool, with softmax below

    @model_validator(mode="after")
    def _heads_fit(self) -> "TransformerSettings":
        if self.hidden % self.heads:
            raise ValueError(
                f"{self.heads} heads can't share hidden={self.hidden}: choose a number of heads that divides it"
            )
        return self


class SpelledSettings(TransformerSettings):
    """A Transformer over pieces of words, and three ways to read it (models.ours.spelled)."""

    width: int = Field(3, ge=1)  # characters of a piece
    pool: Literal["attention", "first", "mean"] = "attention"  # over words; the start symbol's state; the mean state
    wrap: bool = True  # start and end symbols that the layers see
    every: Literal[False] = False  # the chosen projection is the pool's: pieces of a word share a softmax

    @model_validator(mode="after")
    def _reads_what_is_there(self) -> "SpelledSettings":
        if self.vectors is not None:
            raise ValueError("spelled has embeddings of pieces, and vectors are of words: leave vectors out")
        if self.pool == "first" and not self.wrap:
            raise ValueError("pool=first reads the start symbol: leave wrap=false out, or use pool=mean")
        if self.pool != "attention" and (lost := sorted({"attention", "projection"} & self.model_fields_set)):
            raise ValueError(f"{' and '.join(lost)} can't be set with pool={self.pool}, which pools by no attention")
        return self


class TranslatorSettings(ProjectionSettings):
    """A source text in, a target text out, through attention over the source (Vashishth et al. 2019, section 3.3).

    Both texts have start and end symbols, always: the decoder must know where to begin and when to stop.
    """

    architecture: Literal["rnn", "transformer"] = "rnn"
    attention: Literal["bahdanau", "luong"] = "bahdanau"  # rnn: scored from the state before the step, or after it
    hidden: int = Field(256, ge=1)  # rnn: of the decoder, and of each direction of the encoder
    layers: int = Field(1, ge=1)  # rnn: of the encoder; transformer: of each side, 3 unless given
    heads: int = Field(4, ge=1)  # transformer
    inner: int | None = Field(None, ge=1)  # transformer: of the feed-forward layers; four times hidden unless given
    norm: Literal["pre", "post"] = "pre"  # transformer: layer norm before each part, or after its sum
    size: int = Field(256, ge=1)  # of embeddings; transformer: as large as hidden
    scale: float = Field(0.1, gt=0)  # standard deviation of embeddings at first
    trainable: bool = True  # whether training moves the embeddings
    dropout: float = Field(0.3, ge=0, lt=1)  # rnn: of embeddings, between layers, before the output; transformer: 0.1
    tied: bool = True  # the output layer's weights are the embeddings of target words

    @model_validator(mode="before")
    @classmethod
    def _as_a_transformer(cls, given: Any) -> Any:
        """A Transformer's own values where nothing else is said."""
        if not isinstance(given, dict) or given.get("architecture") != "transformer":
            return given
        return {"layers": 3, "dropout": 0.1, "size": given.get("hidden", 256)} | given

    @model_validator(mode="after")
    def _fits_the_architecture(self) -> Self:
        other = {"rnn": {"heads", "inner", "norm"}, "transformer": {"attention"}}[self.architecture]
        if lost := sorted(other & self.model_fields_set):
            raise ValueError(f"{' and '.join(lost)} can't be set with architecture={self.architecture}: leave it out")
        if self.architecture == "transformer" and self.hidden % self.heads:
            raise ValueError(
                f"{self.heads} heads can't share hidden={self.hidden}: choose a number of heads that divides it"
            )
        if self.architecture == "transformer" and self.size != self.hidden:
            raise ValueError(
                f"a Transformer adds what it finds to its embeddings: size={self.size} must be hidden={self.hidden}"
            )
        return self

    @property
    def wrap(self) -> bool:
        """Start and end symbols that the encoder sees; only a Transformer's attention sees them too."""
        return True

    @property
    def vectors(self) -> None:
        """None: embeddings are learnt."""
        return None


class PairSettings(ClassifierSettings):
    """Two texts, and attention over the first that the second asks for (Jain & Wallace 2019, section 2)."""

    attention: Literal["tanh", "dot"] = "tanh"
    encoder: Literal["bilstm", "bigru", "average", "cnn"] = "bilstm"  # of both texts, each with weights of its own
    encoding: Literal["separate", "conditional"] = "separate"  # conditional: the question from the passage's end
    reads: Literal["both", "context"] = "both"  # what the decoder sees: context and question, or the context alone
    shared: bool = False  # one table of embeddings for both texts
    outputs: Literal["classes"] = "classes"

    @model_validator(mode="after")
    def _encoders_fit(self) -> "PairSettings":
        if self.encoding == "conditional" and self.encoder not in ("bilstm", "bigru"):
            raise ValueError(
                f"encoder={self.encoder} has no last state that another could start from: conditional encoding needs "
                "encoder=bilstm or encoder=bigru"
            )
        if self.encoder == "cnn" and self.hidden < 4:
            raise ValueError(f"encoder=cnn has windows of four widths: hidden is 4 or more, not {self.hidden}")
        return self


class OwnSettings(ProjectionSettings):
    """A module of the user's own, through an adapter in a file (exegete.models.own.adapter)."""

    file: str = ""  # of Python, with the adapter
    wrapped: str = ""  # instead of a file: the name of an adapter that this process holds (exegete.wrap)
    make: str = "make"  # the function of it that makes the adapter, from words and labels
    trained: bool = False  # it makes a trained model: judged as it is, never trained
    hash: str | None = None  # of the file and what it imports from beside it; filled in, so that a change is noticed

    @property
    def wrap(self) -> bool:
        """No start and end symbols."""
        return False

    @property
    def vectors(self) -> None:
        """None: embeddings are the module's own."""
        return None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if bool(self.file) == bool(self.wrapped):
            raise ValueError("name the Python file with your adapter: own:file=my_model.py")
        return self


class HuggingFaceSettings(BaseModel):
    """A model of transformers, by its name on the hub or its folder: `hf:NAME`, `hf:FOLDER` (models.huggingface)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    head: Literal["own", "lm", "cls", "mean", "attention"] | None = None  # its own; else one of ours on its states
    prompt: str = ""  # of a language model: how it is asked for a class, a TOML file or a template with {text}
    tune: bool = False  # head=own: train it further; else it is judged as it is
    frozen: int = Field(0, ge=0)  # lowest layers, with the embeddings below them, that training leaves as they are
    pair: bool = False  # it reads two texts; filled in by a task of pairs
    labels: str = ""  # the task's classes in the order of the model's, as negative/positive; else matched by name
    label: str = ""  # of a model that gives a text several labels at once: the one that is asked about
    truncate: bool = False  # cut texts to what the model reads, as pipelines do it; else long ones are refused
    wrapped: str = ""  # instead of files: the name of a model that this process holds (exegete.wrap)
    revision: str | None = None  # on the hub: a branch, a tag or a commit
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"  # with others a text alone and in a batch differ
    remote: bool = False  # run Python code that comes with the model: only for authors whom you trust

    @property
    def wrap(self) -> bool:
        """What its tokenizer puts around a text are the start and end symbols."""
        return True

    @property
    def vectors(self) -> None:
        """None: embeddings are its own."""
        return None

    @model_validator(mode="after")
    def _trains_what_it_has(self) -> Self:
        if self.prompt and (self.head not in (None, "lm") or self.tune or self.pair):
            raise ValueError(
                "prompt is for a language model as it is, asked about one text: leave head, tune and pair out"
            )
        if self.head == "lm" and (self.tune or self.frozen):
            raise ValueError("a language model is asked as it is, and not trained here: leave tune and frozen out")
        if self.tune and self.head not in (None, "own"):
            raise ValueError(f"tune=true is for a model's own classifier, and head={self.head} is always trained")
        if self.dtype != "float32" and (self.tune or self.frozen):
            raise ValueError(f"training is in float32: leave dtype={self.dtype} out")
        return self


class CNNSettings(ClassifierSettings):
    """States from windows of 1, 3, 5 and 7 words."""

    hidden: int = Field(128, ge=4)


# What to write for a name of the hub, which is what people try first.
FROM_THE_HUB = "a model of Hugging Face is hf:NAME, and a module of your own own:file=my_model.py"
MODELS = Catalogue(
    "model",
    {
        "bilstm": Entry(BiLSTMSettings, "bidirectional LSTM, attention pooling, linear decoder (Jain & Wallace 2019)"),
        "bigru": Entry(BiGRUSettings, "bidirectional GRU, attention pooling, linear decoder"),
        "average": Entry(AverageSettings, "single words through one layer, attention pooling, linear decoder"),
        "cnn": Entry(CNNSettings, "convolutions of widths 1, 3, 5, 7, attention pooling, linear decoder"),
        "flat": Entry(FlatSettings, "hierarchical's counterpart: one attention over the whole document"),
        "hierarchical": Entry(
            HierarchicalSettings, "attention over words, then over sentences (Yang et al. 2016; Serrano & Smith 2019)"
        ),
        "hf": Entry(HuggingFaceSettings, "a transformer of Hugging Face, by hub name or folder: hf:NAME, hf:FOLDER"),
        "ladder": Entry(LadderSettings, "single words vote; attention decides a given share of the logit: known truth"),
        "own": Entry(OwnSettings, "a PyTorch module of your own, through an adapter: own:file=my_model.py"),
        "pair": Entry(PairSettings, "two texts: the second asks, attention looks at the first (Jain & Wallace 2019)"),
        "rationale": Entry(RationaleSettings, "bilstm that reads only the words it selects (Bastings et al. 2019)"),
        "spelled": Entry(SpelledSettings, "transformer that reads words by pieces, chunks of their letters"),
        "transformer": Entry(TransformerSettings, "self-attention layers, attention pooling, linear decoder"),
        "translator": Entry(TranslatorSettings, "one text to another, attention at every word (Bahdanau et al. 2015)"),
    },
    FROM_THE_HUB,
)
HUB = "hf:"  # before the name of a model of transformers

# The kinds of tasks that models are for; all others read one text.
KINDS: dict[str, tuple[Kind, ...]] = {
    "pair": ("pair",),
    "translator": ("translation",),
    "hf": ("classification", "pair"),
}


def task_kinds(name: str) -> tuple[Kind, ...]:
    """The kinds of tasks that a model is for."""
    return KINDS.get(name.partition(":")[0], ("classification",))
