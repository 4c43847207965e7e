"""The doors, as a table: every architecture with every kind of head, and one with all that people do to their models.

Each is taken as a user would take it, and predicts what `transformers.pipeline` predicts (right), or is refused by a
sentence. What raises anything else, or predicts otherwise, is wrong.
"""

import copy
import json
import re
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

import exegete as ex
from exegete.answers.explain import example_of
from exegete.base.errors import ExegeteError
from exegete.models.huggingface.architectures import ARCHITECTURES
from exegete.training.pretrained import GivenModel
from tests.models.architectures import MADE, REFUSED
from tests.models.odd_texts import odd_texts
from tests.models.tiny import SMALL, byte_pieces, drawn, saved, word_pieces

TEXTS = ["a bad movie", "a charming plot of unbelievably terrific dull", "ok", "so dull , so bad !", "OK (3.50)"]
HEADS: dict[str, dict[str, Any]] = {
    "two default labels": {},
    "named labels": {"id2label": {0: "bad", 1: "good", 2: "so so"}},
    "one logit": {"num_labels": 1},
    "multi-label": {"problem_type": "multi_label_classification", "id2label": {0: "toxic", 1: "rude", 2: "ok"}},
    "regression": {"num_labels": 1, "problem_type": "regression"},
}
CLOSE = 1e-5


class Door(NamedTuple):
    """One line of the table."""

    architecture: str
    case: str
    outcome: str  # right, sentence or wrong
    said: str  # the largest difference of a probability, or the sentence


def base_of(architecture: str, tokenizer: Any, **config: Any) -> Any:
    """A tiny random classifier."""
    import transformers

    known = MADE | REFUSED
    name, _, settings = known.get(architecture, ("", "", {}))
    kind = name.removesuffix("Config").removesuffix("Text") + "ForSequenceClassification"
    if not hasattr(transformers, kind):
        return None
    more = {"vocab_size": len(tokenizer), "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return drawn(getattr(transformers, kind)(getattr(transformers, name)(**(settings | more | config))))


def piped(base: Any, tokenizer: Any, texts: list[str], **more: Any) -> list[dict[str, float]]:
    """What transformers gives every text, by label."""
    import transformers

    pipe = transformers.pipeline("text-classification", model=base, tokenizer=tokenizer, top_k=None, **more)
    return [{each["label"]: each["score"] for each in scored} for scored in pipe(texts)]  # type: ignore[index,misc]


def ours(given: Any, texts: list[str]) -> list[dict[str, float]]:
    """What we predict, by class."""
    assert isinstance(given, GivenModel)
    model = given.model
    with torch.no_grad():
        logits = torch.cat([model.logits(model.collate([example_of(given, (text,))])) for text in texts])
    return [dict(zip(model.labels, row, strict=True)) for row in logits.double().softmax(-1).tolist()]


def compared(given: Any, theirs: list[dict[str, float]], texts: list[str]) -> float:
    """The largest difference of a probability; of one logit, that of its one label."""
    found, apart = ours(given, texts), 0.0
    for one, other in zip(found, theirs, strict=True):
        names = {"LABEL_0": "1"} if set(other) == {"LABEL_0"} else {}
        shared = [name for name in other if names.get(name, name) in one]
        assert shared
        apart = max(apart, *(abs(one[names.get(name, name)] - other[name]) for name in shared))
    return apart


def tried(architecture: str, case: str, door: Callable[[], float], close: float = CLOSE) -> Door:
    """What comes of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            apart = door()
    except ExegeteError as refused:
        said = re.sub(rf"{re.escape(tempfile.gettempdir())}/\w+", "FOLDER", str(refused))
        return Door(architecture, case, "sentence", said)
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        return Door(architecture, case, "wrong", f"{type(error).__name__}: {error}")
    return Door(architecture, case, "right" if apart <= close else "wrong", f"{apart:.0e}")


def heads(wanted: Mapping[str, Collection[str]] | None = None) -> Iterator[Door]:
    """Every architecture with every kind of head, or those wanted, from folders as `save_pretrained` writes them."""
    for architecture in ARCHITECTURES:
        for case in HEADS if wanted is None else wanted[architecture]:
            yield tried(architecture, case, partial(_from_folder, architecture, HEADS[case]))


def _from_folder(architecture: str, config: dict[str, Any]) -> float:
    import transformers

    tokenizer = word_pieces()
    base = base_of(architecture, tokenizer, **config)
    with tempfile.TemporaryDirectory() as folder:
        if base is None:  # transformers has no classifier of it, or none that is tiny: its config is all there is
            kind = {"architectures": ["XForSequenceClassification"], "model_type": architecture}
            two = {"is_encoder_decoder": True} if architecture in ("marian",) else {}
            (Path(folder) / "config.json").write_text(json.dumps(kind | two), encoding="utf8")
        else:
            saved(base, tokenizer, Path(folder))
        several = config.get("problem_type") == "multi_label_classification"
        given = ex.load(f"hf:{folder}{':label=rude' if several else ''}")
        theirs = transformers.AutoTokenizer.from_pretrained(folder)  # as a pipeline of this folder reads it
        return compared(given, piped(base, theirs, TEXTS), TEXTS)


def bert(tokenizer: Any = None, **config: Any) -> tuple[Any, Any]:
    """The one architecture."""
    tokenizer = tokenizer or word_pieces()
    return base_of("bert", tokenizer, **(SMALL | config)), tokenizer


def wrapped(base: Any, tokenizer: Any, texts: list[str] = TEXTS, theirs: Any = None, **more: Any) -> float:
    """From memory, beside a pipeline."""
    given = ex.wrap(base, tokenizer=tokenizer, **more)
    ours(given, texts)  # what we refuse, a pipeline may stumble over
    return compared(given, piped(theirs or base, tokenizer, texts, **({"truncation": True} if more else {})), texts)


def _no_pad_token() -> float:
    import transformers

    tokenizer = byte_pieces()
    tokenizer.pad_token = None
    config = transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=64)
    return wrapped(drawn(transformers.GPT2ForSequenceClassification(config)), tokenizer)


def _own_forward() -> float:
    import transformers

    class Doubling(transformers.BertForSequenceClassification):
        def forward(self, *arguments: Any, **more: Any) -> Any:
            output = super().forward(*arguments, **more)
            output.logits = output.logits * 2 + 1
            return output

    base, tokenizer = bert()
    own = Doubling(base.config)
    own.load_state_dict(base.state_dict())
    own.train(False)
    return wrapped(own, tokenizer)


def _adapter() -> float:
    base, tokenizer = bert()

    class Adapter(torch.nn.Module):
        def merge_and_unload(self) -> Any:
            return copy.deepcopy(base)

    return wrapped(Adapter(), tokenizer, theirs=base)


def _adapter_folder() -> float:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "adapter_config.json").write_text('{"base_model_name_or_path": "bert"}', encoding="utf8")
        ex.load(f"hf:{folder}")
    return float("nan")


def _quantised() -> float:
    base, tokenizer = bert()
    return wrapped(torch.ao.quantization.quantize_dynamic(base, {torch.nn.Linear}), tokenizer)


def _half() -> float:
    base, tokenizer = bert()
    return wrapped(base.to(torch.bfloat16), tokenizer)


def _training() -> float:
    base, tokenizer = bert()
    given = ex.wrap(base.train(), tokenizer=tokenizer)
    return compared(given, piped(base.eval(), tokenizer, TEXTS), TEXTS)


def _pipeline() -> float:
    import transformers

    base, tokenizer = bert()
    pipe = transformers.pipeline("text-classification", model=base, tokenizer=tokenizer)
    return compared(ex.wrap(pipe), piped(base, tokenizer, TEXTS), TEXTS)


def _cross_encoder() -> float:
    """Two texts, one logit."""
    from exegete.models.huggingface.build import build_from_spec
    from exegete.tasks.example import Example

    base, tokenizer = bert(num_labels=1)
    pairs = [(TEXTS[i], TEXTS[i - 1]) for i in range(len(TEXTS))]
    with tempfile.TemporaryDirectory() as folder:
        model = build_from_spec(f"hf:{saved(base, tokenizer, Path(folder))}:pair=true")
    apart = 0.0
    for first, second in pairs:
        batch = model.collate([Example(0, (tuple(first.split()), tuple(second.split())), 0)])
        with torch.no_grad():
            theirs = base(**tokenizer(first, second, return_tensors="pt")).logits.sigmoid()[0, 0]
            apart = max(apart, abs(float(model.logits(batch).softmax(-1)[0, 1] - theirs)))
    return apart


def _other_tokenizer() -> float:
    return wrapped(bert()[0], byte_pieces())


def _long(truncate: bool) -> float:
    base, tokenizer = bert()
    texts = [" ".join(["bad", "plot"] * 90), *TEXTS]
    return wrapped(base, tokenizer, texts, **({"truncate": True} if truncate else {}))


def _line_breaks() -> float:
    tokenizer = byte_pieces()
    tokenizer.model_max_length = 256
    return wrapped(*bert(tokenizer, max_position_embeddings=256), odd_texts())


def _unlabelled() -> float:
    base, tokenizer = bert()
    texts = [f"{text} {number}" for number in range(12) for text in TEXTS]
    given = ex.wrap(base, tokenizer=tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        found = ex.audit(given, texts, quick=True, out=folder, workers=1)
    assert found.answer
    return 0.0


ONE: dict[str, Callable[[], float]] = {
    "no pad token (GPT-2)": _no_pad_token,
    "subclass with its own forward": _own_forward,
    "PEFT, in memory": _adapter,
    "PEFT, its folder": _adapter_folder,
    "quantised": _quantised,
    "bf16": _half,
    "train mode": _training,
    "pipeline": _pipeline,
    "cross-encoder": _cross_encoder,
    "tokenizer of another model": _other_tokenizer,
    "texts over the limit": lambda: _long(False),
    "texts over the limit, truncate=true": lambda: _long(True),
    "line breaks, tabs, emoji": _line_breaks,
    "unlabelled texts": _unlabelled,
}


def one() -> Iterator[Door]:
    """One architecture, with all that people do."""
    for case, door in ONE.items():
        yield tried("bert", case, door, close=1e-2 if case == "bf16" else CLOSE)
