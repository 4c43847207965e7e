"""Architectures: how the attention of each kind of model is reached (`exegete ls architectures`).

The list is what was tried: a test makes every one of them, random and tiny, and asks for all that access promises. A
model of another architecture that uses transformers' interface is read all the same, after its own proof at load;
softmaxes are caught in those of this list alone.
"""

from typing import Literal, NamedTuple

AttentionAccess = Literal["interface", "softmax", "refused"]


class Architecture(NamedTuple):
    """One `model_type` of transformers."""

    way: AttentionAccess
    said: str = ""  # what is special about its attention; of a refused one, why


ENCODERS = ("bert", "roberta", "xlm-roberta", "camembert", "distilbert", "electra")
DECODERS = ("gpt2", "qwen2", "gpt_neox", "phi3", "olmo2", "opt")
CAUGHT = ("deberta-v2", "mpnet", "roformer", "bloom", "xlm", "squeezebert")

ARCHITECTURES: dict[str, Architecture] = {
    **dict.fromkeys(ENCODERS, Architecture("interface", "encoder")),
    "albert": Architecture("interface", "encoder whose layers share one attention"),
    "modernbert": Architecture("interface", "encoder; most layers look at near words only"),
    **dict.fromkeys(DECODERS, Architecture("interface", "language model, looks back only")),
    "llama": Architecture("interface", "language model whose heads share keys"),
    "qwen3": Architecture("interface", "language model whose heads share keys"),
    "mistral": Architecture("interface", "language model, looks back at near words only"),
    "gemma2": Architecture("interface", "language model whose scores are capped"),
    "gemma3_text": Architecture("interface", "language model, some layers look at near words only"),
    "gpt_oss": Architecture("interface", "language model with sinks: rows sum to less than 1"),
    "bart": Architecture("interface", "encoder, decoder and cross attention"),
    "marian": Architecture("interface", "encoder, decoder and cross attention"),
    "t5": Architecture("interface", "encoder, decoder and cross attention, with a bias of positions"),
    **dict.fromkeys(CAUGHT, Architecture("softmax", "bypasses the interface")),
    "mobilebert": Architecture("refused", "reads the embeddings beside each word, and those of padding, too"),
    "xlnet": Architecture("refused", "computes its attention by einsum in a layout of its own"),
    "funnel": Architecture("refused", "pools words between its layers, so that a weight is of no word"),
    "longformer": Architecture("refused", "keeps its weights in bands of a window, not as words by words"),
    "nystromformer": Architecture("refused", "approximates its attention by landmarks and has no weights of words"),
    "falcon": Architecture("refused", "calls a kernel that keeps its weights to itself"),
    "fnet": Architecture("refused", "mixes words by a Fourier transform: nothing attends"),
    "mamba": Architecture("refused", "reads words by a state space: nothing attends"),
    "rwkv": Architecture("refused", "reads words by a recurrence: nothing attends"),
}


def architecture_refusal(model_type: str) -> str | None:
    """Why an architecture can't be read, as the rest of a sentence about it; None where it may be tried."""
    known = ARCHITECTURES.get(model_type)
    return known.said if known is not None and known.way == "refused" else None


def listing() -> dict[str, str]:
    """Every architecture with its access, for people."""
    return {name: f"{each.way}: {each.said}" for name, each in ARCHITECTURES.items()}
