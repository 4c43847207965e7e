"""Settings of our own models: what a name like `bilstm:attention=dot,projection=sparsegen,lam=0.5` may say."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from exegete.base.names import Catalogue, Entry


class ClassifierSettings(BaseModel):
    """An encoder, an attention that pools its states, and a linear decoder (PROTOCOLS 1.1)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    attention: Literal["tanh", "dot", "none"] = "tanh"  # none: the decoder reads a last state (models.last_state)
    projection: Literal["softmax", "sparsemax", "sparsegen", "entmax", "gates"] = "softmax"  # unused without attention
    lam: float | None = Field(None, lt=1)  # sparsegen's dial
    alpha: float | None = Field(None, gt=1, le=2)  # entmax's dial
    learned: bool = False  # entmax: learn alpha, starting from the given one
    hidden: int = Field(128, ge=1)
    vectors: str | None = None  # glove, glove-50, or a vector file; otherwise random embeddings
    size: int = Field(300, ge=1)  # of random embeddings; vectors have their own
    scale: float = Field(0.1, gt=0)  # standard deviation of random embeddings, and of words that the vectors lack
    trainable: bool = True  # whether training moves the embeddings
    wrap: bool = False  # start and end symbols that the encoder sees and attention doesn't (Jain & Wallace)
    outputs: Literal["one", "classes"] = "one"  # two classes: one sigmoid output, or one output per class

    @model_validator(mode="after")
    def _dials_fit(self) -> "ClassifierSettings":
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
    """Words that vote, each with the same strength, and gates that decide how much each vote counts (PROTOCOLS 16)."""

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
    """States of a whole document as Serrano & Smith (2019) encode it (PROTOCOLS 1.5)."""

    encoder: Literal["rnn", "conv", "none"] = "rnn"  # BiGRU; convolutions of widths 3 and 5; the embeddings themselves
    hidden: int = Field(50, ge=1)  # per direction, or filters per width


class HierarchicalSettings(FlatSettings):
    """The same encoder twice: over the words of each sentence, then over the sentences (PROTOCOLS 1.5)."""

    attention: Literal["tanh", "dot"] = "tanh"

    @model_validator(mode="after")
    def _has_no_wrappers(self) -> "HierarchicalSettings":
        if self.wrap:
            raise ValueError("hierarchical has no start and end symbols: leave wrap out, or use flat:wrap=true")
        return self


class CNNSettings(ClassifierSettings):
    """States from windows of 1, 3, 5 and 7 words."""

    hidden: int = Field(128, ge=4)


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
        "ladder": Entry(LadderSettings, "single words vote; attention decides a given share of the logit: known truth"),
        "rationale": Entry(RationaleSettings, "bilstm that reads only the words it selects (Bastings et al. 2019)"),
    },
)
