"""Texts as people write them (line breaks, tabs, double spaces, emoji, zero-width characters), and five tokenizers."""

import random
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE, Unigram, WordLevel

from tests.models.tiny import LETTERS, SPECIAL, byte_pieces, word_pieces

PLAIN = ("a", "bad", "movie", "of", "terrific", "plot", "isn't", "charming,", "unbelievably", "dull!", "OK", "3.50")
WORDS = (*PLAIN, "naïve", "(über-long)", "film.", "😀", "👩‍👩‍👧", "’tis")
GAPS = (" ", " ", " ", "  ", "\n", "\n\n", "\t", " \n ", "\u00a0", "\u3000", "\r\n", "\u200b", " \u200b ", "\u2028")
AROUND = ("", "", " ", "\n", "\t ", "\ufeff")


def odd_texts(count: int = 60, seed: int = 0) -> list[str]:
    """Texts of two to ten words with anything between and around them."""
    draw = random.Random(seed)
    return [_text(draw) for _ in range(count)]


def _text(draw: random.Random) -> str:
    words = draw.choices(WORDS, k=draw.randint(2, 10))
    joined = words[0] + "".join(draw.choice(GAPS) + word for word in words[1:])
    return draw.choice(AROUND) + joined + draw.choice(AROUND)


def _symbols(vocabulary: dict[str, int]) -> Any:
    named = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    return processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=named
    )


def _fast(cutter: Tokenizer) -> Any:
    from transformers import PreTrainedTokenizerFast

    cutter.post_processor = _symbols(cutter.get_vocab())
    named = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=cutter, model_max_length=64, **named)


def sentence_pieces() -> Any:
    """A tokenizer as Llama's: no cut before merging, so that pieces hold several spaces and cross words."""
    merges = [("▁", "▁"), ("▁", "b"), ("▁b", "a"), ("▁ba", "d"), ("o", "f"), ("f", "▁"), ("\n", "\n"), ("m", "▁")]
    base = ["▁", "\n", "\t", "’", "ü", "ï", *LETTERS]
    pieces = (*SPECIAL, *base, *("".join(pair) for pair in merges), *(f"<0x{byte:02X}>" for byte in range(256)))
    vocabulary = {piece: row for row, piece in enumerate(dict.fromkeys(pieces))}
    cutter = Tokenizer(BPE(vocabulary, merges, unk_token="[UNK]", byte_fallback=True))
    cutter.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    cutter.decoder = decoders.ByteFallback()
    return _fast(cutter)


def unigram_pieces() -> Any:
    """A tokenizer as XLM-R's or T5's: words after ▁, the likeliest pieces of each."""
    scored = [(piece, -5.0) for piece in ("▁", "▁bad", "▁of", "▁mo", "vie", "▁a", "ing", "’", "ü", "ï", "😀", *LETTERS)]
    cutter = Tokenizer(Unigram([*((piece, 0.0) for piece in SPECIAL), *scored], unk_id=1))
    cutter.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    cutter.pre_tokenizer = pre_tokenizers.Metaspace()
    return _fast(cutter)


def character_pieces() -> Any:
    """A tokenizer as CANINE's or ByT5's: every character is a piece, white space too."""
    letters = sorted({*LETTERS, *" \n\t’üï😀\u200b\u00a0"})
    vocabulary = {piece: row for row, piece in enumerate((*SPECIAL, *letters))}
    cutter = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    cutter.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    return _fast(cutter)


KINDS = {
    "WordPiece": word_pieces,
    "byte BPE": byte_pieces,
    "SentencePiece": sentence_pieces,
    "Unigram": unigram_pieces,
    "characters": character_pieces,
}
