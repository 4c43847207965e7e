"""Settings of our own models: what a name like `bilstm:attention=dot,projection=sparsegen,lam=0.5` may say."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from exegete.base.names import Catalogue, Entry


class ClassifierSettings(BaseModel):
    """An encoder, an attention that pools its states, and a linear decoder (PROTOCOLS 1.1)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    attention: Literal["tanh", "dot"] = "tanh"
    projection: Literal["softmax", "sparsemax", "sparsegen", "entmax"] = "softmax"
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

    share: float = Field(0.2, gt=0, lt=1)  # of the words of a text that are selected, on average
    strength: float = Field(10.0, gt=0)  # ρ: what another share costs, times half its squared distance
    rate: float = Field(0.05, ge=0)  # of the Lagrange multiplier that holds the share; 0: only the square does


class AverageSettings(ClassifierSettings):
    """States from single words."""

    activation: Literal["tanh", "relu"] = "tanh"


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
        "rationale": Entry(RationaleSettings, "bilstm that reads only the words it selects (Bastings et al. 2019)"),
    },
)
