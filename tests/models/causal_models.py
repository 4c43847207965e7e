"""Tiny random language models of every causal architecture, and a tokenizer whose pieces are bytes and some words."""

from functools import cache
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from exegete.models.huggingface.build import wrap_classifier
from exegete.models.huggingface.causal import LanguageModel, PromptClassifier
from exegete.models.huggingface.prompts import Prompt
from tests.models.architectures import MADE
from tests.models.tiny import drawn

CAUSAL = sorted(name for name, (_, kind, _) in MADE.items() if kind.endswith(("ForCausalLM", "LMHeadModel")))
TEMPLATE = "It is: {text}\nSo it is"
CHAT = (
    "{% for m in messages %}<|start|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def bytes_without_symbols(start: bool = False, padding: bool = False, chat: bool = False) -> Any:
    """A tokenizer as GPT-2's: bytes, the space before a word in its first piece, no symbol around a text."""
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    merges = [("Ġ", "b"), ("Ġb", "a"), ("Ġba", "d"), ("Ġ", "o"), ("Ġo", "k"), ("Ġ", "g"), ("Ġg", "o"), ("i", "t")]
    pieces = ("<|end|>", "<pad>", "<|start|>", *sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, merges))
    cutter = Tokenizer(BPE({piece: row for row, piece in enumerate(pieces)}, merges))
    cutter.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    cutter.decoder = decoders.ByteLevel()
    if start:
        cutter.post_processor = processors.TemplateProcessing(single="<|start|> $A", special_tokens=[("<|start|>", 2)])
    named = {"eos_token": "<|end|>", "additional_special_tokens": ["<|start|>"]} | (
        {"pad_token": "<pad>"} if padding else {}
    )
    found = PreTrainedTokenizerFast(tokenizer_object=cutter, **named)
    found.chat_template = CHAT if chat else None
    return found


@cache
def base_of(model_type: str) -> Any:
    """A random language model for that tokenizer."""
    import transformers

    config, kind, settings = MADE[model_type]
    size = len(bytes_without_symbols())
    more = {
        "vocab_size": size,
        "bos_token_id": 2,
        "eos_token_id": 0,
        "pad_token_id": None,
        "max_position_embeddings": 256,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return drawn(getattr(transformers, kind)(getattr(transformers, config)(**(settings | more))))


def language_model(model_type: str = "llama", **tokenizer: bool) -> LanguageModel:
    """One that predicts the next piece."""
    found = wrap_classifier(base_of(model_type), bytes_without_symbols(**tokenizer))
    assert isinstance(found, LanguageModel)
    return found


def classifier(model_type: str = "llama", prompt: Prompt | None = None, **tokenizer: bool) -> PromptClassifier:
    """One that is asked for a class in words."""
    answers = {"bad": [" bad", "bad"], "good": [" good", " ok"]}
    how = prompt or Prompt(TEMPLATE, answers)
    found = wrap_classifier(base_of(model_type), bytes_without_symbols(**tokenizer), prompt=how)
    assert isinstance(found, PromptClassifier)
    return found
