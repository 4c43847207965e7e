"""Fuzz inputs: what is drawn, right, nearly right or noise, and what is done with it."""

import gzip
import io
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import polars as pl
from hypothesis import strategies as st
from rich.console import Console

from exegete.answers.explain import explain_prediction
from exegete.answers.pages.explanations import show, write_page
from exegete.base.files import whole_file
from exegete.base.names import parse
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.given import tokens_of
from exegete.models.build import build_model
from exegete.models.settings import MODELS
from exegete.runs.study import load_study
from exegete.runs.training import train_model
from exegete.tasks.catalogue import TASKS, check_task, load_task
from exegete.tasks.example import Example, Task
from exegete.tasks.tokenizers import TOKENIZERS
from exegete.training.checkpoint import load_checkpoint

SOUND = 6  # times as often as each way to spoil it, a file is left as it is
INPUT = "input"  # the folder with what was given; what lies beside it was written by us

# Every category of Unicode: no mark, sign, control or private character is missing. Surrogates can't be written.
CATEGORIES = ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf",
              "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cn")  # fmt: skip
character = st.sampled_from(CATEGORIES).flatmap(lambda name: st.characters(categories=[name]))  # type: ignore[list-item]
anything = st.text(character, max_size=24)
word = st.sampled_from(
    ["good", "bad", "film", "the", "a", "很好", "très", "x1", "don't", "", " ", "NaN", "null", "-1", "1e999"]
)
text = st.one_of(st.lists(word, max_size=9).map(" ".join), anything, st.lists(anything, max_size=5).map(" ".join))
label = st.one_of(st.sampled_from(["0", "1", "yes", "no", "", " ", "nan", "inf"]), anything)


class File(NamedTuple):
    """A file's name, its bytes, and the settings that a task names it with."""

    name: str
    content: bytes
    settings: str = ""


column = st.sampled_from(["text", "label", "split", "question", "rationale", "candidates", "", "text;label"])
setting = st.sampled_from(
    [*[""] * 20, "text=label", "label=text", "question=question", "split=split", "min_length=2", "max_length=3",
     "test_limit=1", "planted=token", "tokenizer=characters", "tokenizer=jain_wallace", "unlabelled=drop",
     "lower=false", "min_df=5", "explain=question", "dev=nowhere.csv", "min_length=0", "legacy_length=true"]
)  # fmt: skip


def _spoiled(content: bytes) -> st.SearchStrategy[bytes]:
    """The bytes as they are, cut off, or with some of them changed."""
    if not content:
        return st.just(content)
    place = st.integers(0, len(content) - 1)
    changed = st.tuples(place, st.binary(min_size=1, max_size=3)).map(
        lambda at: content[: at[0]] + at[1] + content[at[0] + len(at[1]) :]
    )
    return st.one_of(*[st.just(content)] * SOUND, place.map(lambda n: content[:n]), changed)


def _packed(named: tuple[str, bytes, bool, str]) -> File:
    name, content, packed, settings = named
    return File(f"{name}.gz", gzip.compress(content), settings) if packed else File(name, content, settings)


def _files(names: list[str], contents: st.SearchStrategy[str]) -> st.SearchStrategy[File]:
    written = contents.map(lambda said: said.encode("utf8", "surrogatepass")).flatmap(_spoiled)
    whole = st.tuples(st.sampled_from(names), written, st.booleans(), setting).map(_packed)
    return whole.flatmap(lambda f: _spoiled(f.content).map(lambda content: File(f.name, content, f.settings)))


@st.composite
def _lines(draw: Callable[[st.SearchStrategy[Any]], Any]) -> str:
    """A table with a header, most of whose rows are as wide as it; quotes come as they come."""
    mark = draw(st.sampled_from([",", "\t", ";", ",", ","]))
    header = draw(st.one_of(st.just(["text", "label"]), st.lists(column, min_size=1, max_size=4)))
    quote = draw(st.sampled_from(["", '"', "'"]))
    rows = draw(st.lists(st.lists(st.one_of(text, label), min_size=len(header), max_size=len(header)), max_size=30))
    odd = draw(st.lists(st.lists(text, max_size=4), max_size=2))
    table = [header, *rows, *odd]
    end: str = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    return end.join(mark.join(f"{quote}{cell}{quote}" for cell in row) for row in table)


WORDS = ("good", "bad", "film", "it", "the", "很好", "très", "x1", "don't", "e\u0301", "\u200b", "ﬁ", "🙂", "नमस्ते")


def _rows(key: int) -> list[tuple[str, str]]:
    """Sixty short texts of two classes, enough for all splits; by a key, since so many draws would tire hypothesis."""
    draw = random.Random(key)
    return [(" ".join(draw.choices(WORDS, k=draw.randint(1, 9))), draw.choice("01")) for _ in range(60)]


right = st.integers(0, 2**32).map(_rows)
value = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), text, label),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(column, inner, max_size=3)),
    max_leaves=6,
)
plain_row = st.fixed_dictionaries({"text": text, "label": label})
row = st.one_of(plain_row, plain_row, st.dictionaries(column, value, max_size=4))
json_lines = st.lists(st.one_of(row.map(json.dumps), row.map(json.dumps), value.map(json.dumps), anything), max_size=30)
sound = st.tuples(st.sampled_from([",", "\t", ";"]), right).map(
    lambda found: "\n".join(found[0].join(cells) for cells in (("text", "label"), *found[1]))
)
sound_json = right.map(lambda rows: "\n".join(json.dumps({"text": a, "label": b}) for a, b in rows))
separated = _files(["a.csv", "a.tsv"], st.one_of(sound, sound, _lines(), anything))
jsonl = _files(["a.jsonl"], st.one_of(sound_json, json_lines.map("\n".join)))


def _as_parquet(rows: list[dict[str, Any]]) -> bytes:
    frame, out = pl.DataFrame(rows, infer_schema_length=None, strict=False), io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


flat = st.one_of(st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.floats(), text, label)
flat_row = st.fixed_dictionaries({"text": st.one_of(text, flat), "label": st.one_of(label, flat)})
parquet = (
    st.one_of(
        right.map(lambda rows: [{"text": a, "label": b} for a, b in rows]),
        st.lists(st.one_of(plain_row, plain_row, flat_row), min_size=1, max_size=30),
    )
    .map(_as_parquet)
    .flatmap(_spoiled)
    .flatmap(lambda content: setting.map(lambda settings: File("a.parquet", content, settings)))
)


def given(found: File, folder: Path) -> Path:
    """The file, where it is given."""
    path = folder / INPUT / found.name
    path.parent.mkdir()
    path.write_bytes(found.content)
    return path


def read_file(found: File, folder: Path) -> None:
    """As `exegete tokens` does: read the task, write its words."""
    spec = f"file:{given(found, folder)}" + (f":{found.settings}" if found.settings else "")
    with whole_file(folder / "words.csv") as beside:
        tokens_of(load_task(spec), ["train", "test"]).write_csv(beside)


key = st.sampled_from(["name", "title", "notes", "tasks", "models", "seeds", "training", "kinds", "trained",
                       "experiments", "split", "plugins", "epochs", "lr", "metric", "nothing", "texts",
                       "draws"])  # fmt: skip
scalar = st.one_of(
    st.integers(-3, 10**20).map(str), st.floats().map(str), st.booleans().map(lambda b: str(b).lower()),
    st.sampled_from(['"sst"', '"bilstm"', '"agreement"', '"rotten_tomatoes:min_df=2"', '"accuracy"', '"test"']),
    anything.map(json.dumps),
)  # fmt: skip
listed = st.lists(scalar, max_size=3).map(lambda parts: f"[{', '.join(parts)}]")
assigned = st.tuples(key, st.one_of(scalar, listed)).map(lambda pair: f"{pair[0]} = {pair[1]}")
heading = key.flatmap(lambda k: st.sampled_from([f"[{k}]", f"[[{k}]]", f"[kinds.{k}]", f"[training.{k}]"]))
RIGHT = [
    'tasks = ["rotten_tomatoes"]', 'models = ["bilstm"]', "seeds = [0]", "[training]", "epochs = 1", "[[experiments]]",
    'name = "agreement"',
]  # fmt: skip
toml = st.one_of(
    st.lists(st.one_of(assigned, assigned, heading, anything), max_size=12),
    st.lists(st.one_of(assigned, heading), max_size=2).flatmap(lambda more: st.permutations([*RIGHT, *more])),
    st.lists(assigned, max_size=2).map(lambda more: [*RIGHT, *more]),
).map(lambda lines: File("study.toml", "\n".join(lines).encode("utf8", "surrogatepass")))


def read_study(found: File, folder: Path) -> None:
    """As `exegete run` does before it runs."""
    load_study(str(given(found, folder)))


@cache
def small() -> tuple[Path, Task]:
    """A checkpoint of a small model, trained once."""
    home = Path(mkdtemp(prefix="exegete-fuzz-"))
    lines = [f"{'good' if i % 2 else 'bad'} film {'abcdefgh'[i % 8]} {i},{i % 2}" for i in range(60)]
    (home / "reviews.csv").write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf8")
    name = f"file:{home / 'reviews.csv'}"
    train_model(name, "bilstm:size=4,hidden=4", 0, "epochs=1", home / "model")
    return home / "model", load_task(name)


fact = st.sampled_from(
    ["format", "model", "words", "labels", "size", "wrap", "metrics", "seed", "task", "weights_hash"]
)
checkpoint = st.one_of(
    st.tuples(st.just("facts"), st.tuples(fact, st.one_of(value, st.sampled_from(["cnn", "own:file=x", "bilstm"])))),
    st.tuples(st.sampled_from(["json", "weights"]), st.tuples(st.floats(0, 1), st.binary(max_size=8))),
    st.tuples(st.sampled_from(["without json", "without weights", "whole"]), st.none()),
)


def read_checkpoint(found: tuple[str, Any], folder: Path) -> None:
    """A checkpoint folder with something of it changed, cut off, or gone."""
    how, change = found
    parts = {path.name: path.read_bytes() for path in small()[0].iterdir() if path.is_file()}
    facts, weights = (next(n for n in parts if n.endswith(end)) for end in (".json", ".safetensors"))
    if how == "facts":
        parts[facts] = json.dumps(json.loads(parts[facts]) | {change[0]: change[1]}).encode()
    elif how in ("json", "weights"):
        name = facts if how == "json" else weights
        at = int(change[0] * len(parts[name]))
        parts[name] = parts[name][:at] + change[1] + (parts[name][at + len(change[1]) :] if change[1] else b"")
    elif how != "whole":
        del parts[facts if how == "without json" else weights]
    home = folder / INPUT
    home.mkdir()
    for name, content in parts.items():
        (home / name).write_bytes(content)
    model = load_checkpoint(home).model
    model.logits(model.collate([Example(0, (("good", "film"),), 0)]))


ADAPTER = """import torch
from torch import nn
import exegete
{top}
class Mine(exegete.OwnPooling):
    def __init__(self, words, labels):
        super().__init__()
        self.table = nn.Embedding({rows}, 4)
        self.scorer = nn.Linear(4, 1)
        self.out = nn.Linear(4, {classes})
    def embed(self, tokens):
        return {embed}
    def states(self, embedded, mask):
        return {states}
    def scores(self, states, mask):
        return {scores}
    def decode(self, context):
        return {decode}
def make(words, labels):
    return {made}
"""
GOOD = {
    "top": "", "rows": "len(words)", "classes": "len(labels)", "embed": "self.table(tokens)", "states": "embedded",
    "scores": "self.scorer(states)[..., 0]", "decode": "self.out(context)", "made": "Mine(words, labels)",
}  # fmt: skip
WRONG = ["None", "3", "'x'", "embedded", "tokens", "context[:0]", "torch.zeros(1)", "torch.full((2, 3), torch.nan)",
         "1 / 0", "self.nothing", "torch.rand(5, 5, 5)", "self.out(context).double()", "states.sum()", "[][0]",
         "{}['x']", "Mine", "nn.Linear(2, 2)", "len(words) + 7", "0", "-1", "(", "self.table(tokens + 10 ** 6)", "mask",
         "raise_", "self.scorer(states)[..., 0] / 0", "torch.randn(states.shape[:2])", "exit(3)"]  # fmt: skip
TOP = [
    "",
    "import nothing_like_this",
    "raise ValueError('no')",
    "def make(",
    "x = 1 / 0",
    "del exegete",
    "import sys; sys.exit(4)",
]
wrong = st.one_of(st.sampled_from(WRONG), anything)
own_model = st.dictionaries(st.sampled_from(sorted(set(GOOD) - {"top"})), wrong, max_size=2).flatmap(
    lambda changed: st.sampled_from(TOP[:1] * 6 + TOP).map(lambda top: GOOD | changed | {"top": top})
)


def read_own_model(found: dict[str, str], folder: Path) -> None:
    """As training does first: make the model, and check that it keeps the adapter's promises."""
    written = ADAPTER.format(**found).encode("utf8", "surrogatepass")
    task = small()[1]
    model = build_model(f"own:file={given(File('my_model.py', written), folder)}", task)
    model.logits(model.collate(task.split("test")[:2]))


def explain_text(said: str, folder: Path) -> None:
    """All tokenizers, then an explanation, in a terminal and on a page."""
    for tokenize in TOKENIZERS.values():
        assert all(tokenize(said)), "an empty token"
    (folder / INPUT).mkdir()
    found = [explain_prediction(small()[0], said, ["attention", "gradient:norm=l2"])]
    show(found, "word", Console(file=io.StringIO(), width=60))
    write_page(folder / INPUT / "it.html", found, "sentence")


base_name = st.sampled_from([*MODELS, *TASKS, *IMPORTANCES, "file:x.csv", "hf:a/b", "own", "", ":"])
pair = st.tuples(st.one_of(key, st.sampled_from(["hidden", "size", "projection", "attention", "steps", "of", "file"])),
                 st.one_of(scalar, label, anything)).map(lambda p: f"{p[0]}={p[1]}")  # fmt: skip
name = st.one_of(anything, st.tuples(base_name, st.lists(pair, max_size=3)).map(lambda p: f"{p[0]}:{','.join(p[1])}"))


def read_name(said: str, _: Path) -> None:
    """A name with settings, as whatever it is the name of."""
    first = parse(said).name
    if first in MODELS:
        MODELS.make(said)
    elif first in IMPORTANCES:
        IMPORTANCES.make(said)
    else:
        check_task(said)
