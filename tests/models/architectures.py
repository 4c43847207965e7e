"""A tiny random model of every architecture that can be read: add a line, and `test_architectures` asks it.

A line makes a model of `transformers`; its `model_type` must be in `exegete.models.huggingface.architectures`.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest
import torch

from exegete.models.huggingface.model import HuggingFace
from tests.models.tiny import drawn, in_memory, word_pieces

WORDS, LENGTHS = 60, (9, 6)  # of the vocabulary; of the two texts of a batch
SMALL = {
    "vocab_size": WORDS,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
}
SHARED = SMALL | {"num_key_value_heads": 2}
NEAR = SHARED | {"head_dim": 8, "sliding_window": 4}
TWO = {
    "vocab_size": WORDS,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "bos_token_id": 1,
    "decoder_start_token_id": 1,
}
SYMBOLS = {"cls_token_id": 1, "sep_token_id": 2, "bos_token_id": 1, "eos_token_id": 2}

# By model_type: names of transformers' classes, and settings.
MADE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertConfig", "BertForSequenceClassification", SMALL),
    "roberta": ("RobertaConfig", "RobertaForSequenceClassification", SMALL),
    "xlm-roberta": ("XLMRobertaConfig", "XLMRobertaForSequenceClassification", SMALL),
    "camembert": ("CamembertConfig", "CamembertForSequenceClassification", SMALL),
    "distilbert": (
        "DistilBertConfig",
        "DistilBertForSequenceClassification",
        {"vocab_size": WORDS, "dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 24, "pad_token_id": 0},
    ),
    "electra": ("ElectraConfig", "ElectraForSequenceClassification", SMALL | {"embedding_size": 8}),
    "albert": ("AlbertConfig", "AlbertForSequenceClassification", SMALL | {"embedding_size": 8}),
    "modernbert": (
        "ModernBertConfig",
        "ModernBertForSequenceClassification",
        SMALL | SYMBOLS | {"local_attention": 4, "global_attn_every_n_layers": 2},
    ),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", {"vocab_size": WORDS, "n_embd": 16, "n_layer": 2, "n_head": 4}),
    "llama": ("LlamaConfig", "LlamaForCausalLM", SHARED),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", SHARED),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", SHARED | {"head_dim": 8}),
    "mistral": ("MistralConfig", "MistralForCausalLM", SHARED | {"sliding_window": 4}),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", SMALL),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", SHARED),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", SHARED),
    "opt": ("OPTConfig", "OPTForCausalLM", SMALL | {"ffn_dim": 24, "word_embed_proj_dim": 16}),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", NEAR),
    "gemma3_text": ("Gemma3TextConfig", "Gemma3ForCausalLM", NEAR),
    "gpt_oss": ("GptOssConfig", "GptOssForCausalLM", NEAR | {"num_local_experts": 2, "num_experts_per_tok": 1}),
    "bart": ("BartConfig", "BartForConditionalGeneration", TWO),
    "marian": ("MarianConfig", "MarianMTModel", TWO),
    "t5": (
        "T5Config",
        "T5ForConditionalGeneration",
        {"vocab_size": WORDS, "d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_heads": 4}
        | {"decoder_start_token_id": 0},
    ),
    "deberta-v2": (
        "DebertaV2Config",
        "DebertaV2ForSequenceClassification",
        SMALL | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    ),
    "mpnet": ("MPNetConfig", "MPNetForSequenceClassification", SMALL),
    "roformer": ("RoFormerConfig", "RoFormerForSequenceClassification", SMALL),
    "bloom": ("BloomConfig", "BloomForCausalLM", {"vocab_size": WORDS, "hidden_size": 16, "n_layer": 2, "n_head": 4}),
    "xlm": (
        "XLMConfig",
        "XLMForSequenceClassification",
        {"vocab_size": WORDS, "emb_dim": 16, "n_layers": 2, "n_heads": 4},
    ),
    "squeezebert": ("SqueezeBertConfig", "SqueezeBertForSequenceClassification", SMALL | {"embedding_size": 16}),
}
REFUSED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "xlnet": (
        "XLNetConfig",
        "XLNetForSequenceClassification",
        {"vocab_size": WORDS, "d_model": 16, "n_layer": 2, "n_head": 4, "d_inner": 24},
    ),
    "mobilebert": (
        "MobileBertConfig",
        "MobileBertForSequenceClassification",
        SMALL | {"embedding_size": 8, "intra_bottleneck_size": 16},
    ),
    "falcon": ("FalconConfig", "FalconForCausalLM", SMALL),
    "fnet": ("FNetConfig", "FNetForSequenceClassification", SMALL),
}


# One of each way to attend: encoders, one that looks back, shared keys, sinks, encoder and decoder, and softmaxes.
OFTEN = ("bert", "modernbert", "gpt2", "llama", "gpt_oss", "t5", "deberta-v2", "bloom")


def each_of(names: Iterable[str]) -> list[Any]:
    """Names of architectures to ask about: few in the default tier, all in the slow one."""
    return [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in names]


@cache
def tiny(model_type: str) -> Any:
    """A model with random weights, at rest."""
    import transformers

    config, kind, settings = (MADE | REFUSED)[model_type]
    made: Callable[[Any], Any] = getattr(transformers, kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return drawn(made(getattr(transformers, config)(**settings)))


NO_CLASSIFIER = ("bart", "marian", "t5")  # made in their own ways, or by nobody


@cache
def classifier(model_type: str, precision: torch.dtype = torch.float32) -> HuggingFace:
    """A tiny random model of an architecture that gives a text one of two classes, as one of ours."""
    import transformers

    config, _, settings = MADE[model_type]
    name = config.removesuffix("Config").removesuffix("Text") + "ForSequenceClassification"
    tokenizer = word_pieces()
    more = {"vocab_size": len(tokenizer), "pad_token_id": 0, "num_labels": 2, "bos_token_id": 2, "eos_token_id": 3}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        base = drawn(getattr(transformers, name)(getattr(transformers, config)(**(settings | more))))
    return in_memory(base.to(precision), tokenizer)


def inputs(model: Any, text: int | None = None) -> dict[str, Any]:
    """Two texts of different lengths, padded on the right; or one of them alone."""
    draw = torch.Generator().manual_seed(1)
    ids = torch.randint(5, WORDS, (len(LENGTHS), max(LENGTHS)), generator=draw)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    given = {"input_ids": ids * mask, "attention_mask": mask.long()}
    if text is not None:
        given = {name: rows[text : text + 1, : LENGTHS[text]] for name, rows in given.items()}
    if model.config.is_encoder_decoder:
        given["decoder_input_ids"] = ids[: len(given["input_ids"]), :4] if text is None else ids[text : text + 1, :4]
    causal = {"use_cache": False} if model.config.is_encoder_decoder or "LM" in type(model).__name__ else {}
    return given | causal
