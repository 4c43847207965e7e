"""Tiny random models of transformers with tokenizers of their own, as folders: nothing is fetched."""

import string
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE, WordPiece
from torch import nn

from exegete.models.huggingface.load import LoadedParts
from exegete.models.huggingface.model import HuggingFace

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LETTERS = string.ascii_letters + string.digits + string.punctuation
KNOWN = [
    "a",
    "bad",
    "movie",
    "char",
    "##ming",
    "un",
    "##believ",
    "##ably",
    "dull",
    "of",
    "plot",
    "terr",
    "##ific",
    "ok",
]
SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
}
STD = 0.25  # of random weights: large enough that attention is not flat


def word_pieces(lower: bool = True) -> Any:
    """A tokenizer as BERT's: pieces within words, CLS before, SEP after each text."""
    from transformers import PreTrainedTokenizerFast

    pieces = (*SPECIAL, *KNOWN, *LETTERS, *(f"##{letter}" for letter in LETTERS))
    vocabulary = {piece: row for row, piece in enumerate(dict.fromkeys(pieces))}
    cutter = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    cutter.normalizer = normalizers.BertNormalizer(lowercase=lower)
    cutter.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cutter.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    named = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=cutter, model_max_length=64, **named)


def byte_pieces(prefix: bool = False) -> Any:
    """A tokenizer as RoBERTa's: bytes, the space before a word written into its first piece."""
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "b"), ("Ġb", "a"), ("Ġba", "d"), ("b", "a"), ("Ġ", "o"), ("Ġo", "f"), ("i", "n"), ("in", "g")]
    pieces = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", *letters, *("".join(pair) for pair in merges))
    vocabulary = {piece: row for row, piece in enumerate(pieces)}
    cutter = Tokenizer(BPE(vocabulary, merges))
    cutter.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    cutter.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    names = ("bos_token", "pad_token", "eos_token", "unk_token", "mask_token")
    named = dict(zip(names, pieces, strict=False))
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=cutter, model_max_length=62, model_input_names=inputs, **named)


def drawn(model: Any, seed: int = 0) -> Any:
    """The same with larger random weights, at rest."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for parameter in model.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=STD)
    return model.eval()


def bert(classes: tuple[str, ...] = ("no", "yes"), tokenizer: Any = None, **more: Any) -> tuple[Any, Any]:
    """A tiny BERT that gives a text a class, and its tokenizer."""
    import transformers

    tokenizer = tokenizer or word_pieces()
    named = dict(enumerate(classes))
    config = transformers.BertConfig(vocab_size=len(tokenizer), id2label=named, pad_token_id=0, **(SMALL | more))
    return drawn(transformers.BertForSequenceClassification(config)), tokenizer


def roberta(prefix: bool = False) -> tuple[Any, Any]:
    """A tiny RoBERTa that gives a text a class, and its tokenizer."""
    import transformers

    tokenizer = byte_pieces(prefix)
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer), pad_token_id=1, type_vocab_size=1, id2label={0: "no", 1: "yes"}, **SMALL
    )
    return drawn(transformers.RobertaForSequenceClassification(config)), tokenizer


def saved(model: Any, tokenizer: Any, folder: Path | None = None) -> Path:
    """Both as transformers writes them."""
    folder = folder or Path(tempfile.mkdtemp())
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@cache
def bert_folder(classes: tuple[str, ...] = ("no", "yes")) -> Path:
    """A tiny BERT on disk, made once."""
    return saved(*bert(classes))


def in_memory(model: Any, tokenizer: Any, spec: str = "hf:tiny") -> HuggingFace:
    """A tiny model as ours, with its own classes and its own head."""
    from exegete.models.huggingface.build import with_proof
    from exegete.models.huggingface.classifier import OwnHead

    labels = tuple(model.config.id2label.values())
    return with_proof(OwnHead(spec, LoadedParts(model, tokenizer, ""), labels, tuple(range(len(labels)))))
