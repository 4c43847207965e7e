"""Transformers whose every weight is set by hand, so that we know which reading of their attention is a reason.

Every word has a value v, which speaks for a class, and two scores: log |v|, a copy of how much it does, and noise. A
head looks, from CLS, by one of these scores (or, without any, at all words alike) and hands the values of words on, or
next to nothing of them (LEAK). Two layers of two heads:

| name | layer 0 | layer 1, the readout | what may be read |
|---|---|---|---|
| planted | noise, unread | copy, read | the readout |
| planted below | copy, read | noise, unread | layer 0, not the readout |
| copied at the readout | all alike, read | copy, unread | nothing: what is read is flat |
| copied in one head | noise, unread | head 0 copy, unread; head 1 all alike, read | nothing |
| copied below | copy, unread | all alike, read | nothing |
| nothing read | all alike, read | copy, handing on exactly 0 | nothing: no weight changes anything |
| flat copy | noise, unread | copy within 13 %, read | nothing: its differences don't count |
| flat copy beside sinks | noise, unread | the same, with nine tenths on CLS and SEP | nothing |
| flat copy beside an idle word | gathers all alike | the same, with half on the full stop | nothing |
| planted beside an idle word | gathers by copy | copy, read, and half on the full stop | the readout, but for it |
| partly planted | noise, unread | copy and noise, read | the readout, partly |

In a softmax a word of value 0 and much weight is not idle: without it all others get more. It is where its state holds
what they say together. So a head *gathers*: the full stop of a text looks at all words, and what it sees is its value.

Numbers are features of a state, each in two places with both signs, so that their mean is 0, beside one that is so
large that a layer norm divides by nearly the same in every state: its own weights undo that. There are no positions,
and feed-forward layers give 0. CLS and SEP have the value 0: they take the weight that no word has.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from exegete.base.noise import normal, stable_seed, uniform
from exegete.models.contract import Predictor
from exegete.models.truths.texts import Language
from exegete.tasks.example import Example, Task

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
BALLAST, CLS, COPY, NOISE, VALUE, OUT, SINK, STOP = range(8)  # features
FEATURES, HEADS, LAYERS = 8, 2, 2
WEIGHT, LEAK, TANH, GAIN = 100.0, 1e-3, 1e-2, 4.0
TEXTS = {"train": 300, "dev": 120, "test": 120}
LABELS = ("against", "for")
LEAST = 0.002  # the smallest value of a word
AWAY = 20.0  # what CLS scores for all words that gather nothing


class WiredHead(NamedTuple):
    """What a head does."""

    by: Mapping[int, float]  # features of words that it looks for, and how much each counts; none: at all alike
    read: float = 1.0  # of a word's value
    gathers: bool = False  # for the full stop, as its value; else for CLS, as what is predicted


_SEES, _COPIES, _ZERO = WiredHead({COPY: 1.0}), WiredHead({COPY: 1.0}, LEAK), WiredHead({COPY: 1.0}, 0.0)
_FLAT, _IDLE, _PARTLY = WiredHead({}), WiredHead({NOISE: 1.0}, LEAK), WiredHead({COPY: 0.05, NOISE: 0.45})
_NEARLY = {COPY: 0.01}  # twice that times log |v|, which spans 6.2: 13 % from the smallest to the largest weight
_GATHERS, _GATHERS_FLAT = WiredHead({COPY: 1.0}, gathers=True), WiredHead(_NEARLY, 1.08, gathers=True)
WiredLayers = tuple[tuple[WiredHead, WiredHead], tuple[WiredHead, WiredHead]]
WIRED: Mapping[str, WiredLayers] = {
    "planted": ((_IDLE, _IDLE), (_SEES, _SEES)),
    "planted below": ((_SEES, _SEES), (_IDLE, _IDLE)),
    "copied at the readout": ((_FLAT, _FLAT), (_COPIES, _COPIES)),
    "copied in one head": ((_IDLE, _IDLE), (_COPIES, _FLAT)),
    "copied below": ((_COPIES, _COPIES), (_FLAT, _FLAT)),
    "nothing read": ((_FLAT, _FLAT), (_ZERO, _ZERO)),
    "flat copy": ((_IDLE, _IDLE), (WiredHead(_NEARLY),) * 2),
    "flat copy beside sinks": ((_IDLE, _IDLE), (WiredHead({**_NEARLY, SINK: 2.0}),) * 2),
    "flat copy beside an idle word": ((_GATHERS_FLAT, _IDLE), (WiredHead({**_NEARLY, STOP: 1.4}),) * 2),
    "planted beside an idle word": ((_GATHERS, _IDLE), (WiredHead({COPY: 1.0, STOP: 6.7}),) * 2),
    "partly planted": ((_IDLE, _IDLE), (_PARTLY, _PARTLY)),
}


class Wired(NamedTuple):
    """A model of transformers with its tokenizer, and texts with its own classes."""

    base: Any
    tokenizer: Any
    task: Task
    model: Predictor


def build_wired(name: str, seed: int = 0) -> Wired:
    """One of them by its name, with the words and texts of a seed."""
    from exegete.models.huggingface.classifier import OwnHead
    from exegete.models.huggingface.load import LoadedParts
    from exegete.models.huggingface.proof import proven

    layers = WIRED[name]
    stop = any(look.gathers for look in layers[0])
    shortest = 13 if stop else 9  # Γ of a perfect order loses 2 / (n − 1) to an idle word
    language = Language(
        stable_seed("wired", seed), fillers=120, rare=0, shortest=shortest, longest=shortest + 5, most=2, stop=stop
    )
    tokenizer = _tokenizer(language.words)
    base = _bert(layers, _words(language, seed), len(tokenizer))
    model = OwnHead("hf:wired", LoadedParts(base, tokenizer, ""), LABELS, (0, 1)).eval()
    texts = {split: language.texts(split, count) for split, count in TEXTS.items()}
    with torch.no_grad():
        size = model.logits(model.collate(_examples(texts["train"])))[:, 1].abs().median()
        base.classifier.weight *= GAIN / 2 / size  # log-odds of 4 in the median text
        model.proof = proven(model)
        task = _task(name, model, texts)
    return Wired(base, tokenizer, task, model)


def _words(language: Language, seed: int) -> Tensor:
    """COPY, NOISE, VALUE, SINK and STOP of every piece, [piece, 5].

    Cues are of several sizes, and fillers hardly count.
    """
    count, cues = len(language.words), language.kinds
    number = torch.arange(count)
    key = stable_seed("wired", seed, "values")
    size = torch.where(number < cues, 0.4 + 0.6 * uniform(key, number), LEAST + 0.03 * uniform(key, number))
    sign = torch.where(number < cues, number % 2, uniform(stable_seed(key, "sign"), number) < 0.5) * 2 - 1
    noise = normal(stable_seed(key, "noise"), number)
    words = torch.stack([size.log(), noise, sign * size, torch.zeros_like(size), torch.zeros_like(size)], -1)
    if language.stop:
        words[cues] = torch.tensor([math.log(LEAST), 0.0, 0.0, 0.0, 1.0])
    special = torch.zeros(len(SPECIAL), words.shape[1], dtype=words.dtype)
    special[SPECIAL.index("[UNK]"), 2] = 1.0  # so that words nobody knows move something, too
    special[[SPECIAL.index("[CLS]"), SPECIAL.index("[SEP]")], 3] = 1.0
    return torch.cat([special, words]).float()


def _tokenizer(words: tuple[str, ...]) -> Any:
    """A piece per word, between CLS and SEP."""
    from tokenizers import Tokenizer, pre_tokenizers, processors
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    rows = {piece: row for row, piece in enumerate((*SPECIAL, *words))}
    cutter = Tokenizer(WordLevel(rows, unk_token="[UNK]"))
    cutter.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ends = [(name, rows[name]) for name in ("[CLS]", "[SEP]")]
    cutter.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    named = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=cutter, model_max_length=64, **named)


@torch.no_grad()
def _bert(layers: WiredLayers, words: Tensor, rows: int) -> Any:
    """All weights 0 but for those that carry features."""
    import transformers

    size = 2 * FEATURES
    config = transformers.BertConfig(
        vocab_size=rows, hidden_size=size, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=4,
        max_position_embeddings=64, id2label=dict(enumerate(LABELS)), label2id={b: a for a, b in enumerate(LABELS)},
        pad_token_id=0, layer_norm_eps=1e-12,
    )  # fmt: skip
    base = transformers.BertForSequenceClassification(config).eval()
    for parameter in base.parameters():
        parameter.zero_()
    for part in base.modules():
        if isinstance(part, nn.LayerNorm):
            part.weight.fill_(WEIGHT / FEATURES**0.5)
    table = torch.zeros(rows, FEATURES)
    table[:, BALLAST], table[SPECIAL.index("[CLS]"), CLS] = WEIGHT, 1.0
    table[:, [COPY, NOISE, VALUE, SINK, STOP]] = words
    base.bert.embeddings.word_embeddings.weight.copy_(torch.stack([table, -table], -1).flatten(1))
    for layer, looks in zip(base.bert.encoder.layer, layers, strict=True):
        _set(layer.attention, looks)
    base.bert.pooler.dense.weight[0, 2 * OUT] = TANH  # a small number, of which tanh gives nearly itself
    base.classifier.weight[:, 0] = torch.tensor([-0.5, 0.5]) / TANH
    return base


def _set(attention: Any, looks: tuple[WiredHead, WiredHead]) -> None:
    """Scores of CLS are the features that heads look for, and what is read goes to OUT; of a full stop that gathers, to
    its VALUE, while all other tokens look at CLS, of which nothing is read.
    """
    own, wide = attention.self, 2 * FEATURES // HEADS
    for head, look in enumerate(looks):
        place = head * wide
        own.query.weight[place, 2 * (STOP if look.gathers else CLS)] = 2 * wide**0.5
        for feature, much in look.by.items():
            own.key.weight[place, 2 * feature] = much
        if look.gathers:
            own.query.bias[place + 1], own.query.weight[place + 1, 2 * STOP] = AWAY * wide**0.5, -AWAY * wide**0.5
            own.key.weight[place + 1, 2 * CLS] = 1.0
        own.value.weight[place, 2 * VALUE] = look.read
        to = 2 * (VALUE if look.gathers else OUT)
        attention.output.dense.weight[to, place], attention.output.dense.weight[to + 1, place] = 1.0, -1.0


def _examples(texts: list[tuple[str, ...]], labels: list[int] | None = None, first: int = 0) -> tuple[Example, ...]:
    return tuple(Example(first + i, (text,), labels[i] if labels else 0) for i, text in enumerate(texts))


def _task(name: str, model: Predictor, texts: dict[str, list[tuple[str, ...]]]) -> Task:
    """Texts with the classes that the model gives them."""
    splits, first = {}, 0
    for split, some in texts.items():
        said = model.logits(model.collate(_examples(some))).argmax(-1).tolist()
        splits[split] = _examples(some, said, first)
        first += len(some)
    return Task(f"wired: {name}", LABELS, splits, "drawn", min_df=1)
