"""Requests that are drawn: commands and calls of the front door, as a person means them, or with one thing wrong."""

import csv
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

import polars as pl
from tests.models.tiny import bert
from torch import Tensor, nn

import exegete as ex
from exegete.wings.annotation.page import write_sheets
from exegete.wings.annotation.sample import Draw, draw_sample

SOUND = 0.75  # of the requests are meant to be valid
SMALL = "size=4,hidden=4"
MODELS = (f"average:{SMALL}", f"bilstm:{SMALL}", f"cnn:{SMALL}", f"bilstm:{SMALL},attention=dot,projection=sparsemax")
METHODS = (
    "attention", "gradient:norm=l2", "gradient_x_input", "lrp", "leave_one_out", "leave_one_out:of=logit", "occlusion",
    "random", "attention_x_gradient", "lime:samples=20", "kernel_shap:samples=20", "smoothgrad:samples=3",
    "integrated_gradients:steps=4", "replacement",
)  # fmt: skip
KINDS = (
    "tasks", "models", "architectures", "importances", "interventions", "measures", "experiments", "tests", "papers",
    "schema",
)  # fmt: skip
COMMANDS = (
    "ls", "train", "run", "report", "reproduce", "audit", "calibrate", "explain", "words", "serve", "tokens",
    "annotate",
)  # fmt: skip
TEXTS = (
    "good film", "a bad film", "good", "it's a good, very good film!", "bad bad bad bad", "unheard of words", "nan",
    "GOOD\u00a0FILM", "line\nbreak", "tab\there", "a" * 300, "good " * 80, "很好 good", "e\u0301 good", "🙂 film",
    "[bold]good[/bold]", "good | bad",
)  # fmt: skip
NONSENSE = (
    "", " ", "nowhere", "--", "-1", "a\nb", "../..", "很好", "nan", "1e999", "*", "file:", "hf:", ":", "a=b",
    "[x]", "/dev/null/x",
)  # fmt: skip
MOST = 50  # letters that a tiny BERT has places for
CLASSES = ("n/a", "sci/tech")
PUBLISHED = (
    "jain_wallace_2019", "serrano_smith_2019", "wiegreffe_pinter_2019", "vashishth_2019", "neely_schouten_2020",
    "meister_2021",
)  # fmt: skip
RESULTS = str(Path(__file__).parents[1] / "results")
ASKED: dict[str, dict[str, Any]] = {
    "agreement": {"draws": 2}, "permutation": {"draws": 3}, "importance_sets": {"orders": 2}, "single_weight": {},
    "decision_flips": {}, "adversary_search": {"steps": 3}, "dispersion": {},
    "mediation": {"methods": ["attention", "random"]},
    "faithfulness": {"methods": ["attention", "random"], "robustness": 0},
}  # fmt: skip


@dataclass(frozen=True)
class Request:
    """What is asked, in words, whether it is valid, and how it is asked."""

    said: str
    valid: bool
    ask: Callable[[], object] | None  # of a call
    line: tuple[str, ...] = ()  # of a command


@dataclass(frozen=True)
class Place:
    """A folder with everything that requests are about: texts, models, a study, a run, sheets."""

    home: Path

    @property
    def task(self) -> str:
        """Texts of two classes, each with a slash in its name."""
        return f"file:{self.home / 'news.csv'}:split=split"

    @property
    def models(self) -> list[str]:
        """Checkpoint folders."""
        return [self.at(f"model{number}") for number in range(len(MODELS))]

    def at(self, name: str) -> str:
        """A file or folder of it."""
        return str(self.home / name)


Maker = Callable[[random.Random, Place, Path], Request]
STUDY = """tasks = ["{task}"]\nmodels = ["{model}"]\nseeds = [0]\n[training]\nepochs = 1
[[experiments]]\nname = "agreement"\ndraws = 2\ntexts = 12
[[experiments]]\nname = "permutation"\ndraws = 2\ntexts = 12
"""


@cache
def place() -> Place:
    """Made once per process."""
    here, chance = Place(Path(tempfile.mkdtemp(prefix="exegete-requests-"))), random.Random(0)
    rows = []
    for i, split in enumerate(["train"] * 60 + ["dev"] * 20 + ["test"] * 40):
        words = [*chance.choices(["a", "b", "c", "d", "the", "of"], k=chance.randint(2, 7)), ("bad", "good")[i % 2]]
        rows.append(f"{' '.join(words)} x{i},{CLASSES[i % 2]},{split}")
    (here.home / "news.csv").write_text("\n".join(["text,label,split", *rows]) + "\n", encoding="utf8")
    (here.home / "texts.txt").write_text("good film\na bad film\n", encoding="utf8")
    for model, folder in zip(MODELS, here.models, strict=True):
        ex.train(model, here.task, training={"epochs": 1}, out=folder)
    (here.home / "study.toml").write_text(STUDY.format(task=here.task, model=MODELS[0]), encoding="utf8")
    ex.audit(study=here.home / "study.toml", out=here.home / "run", workers=1)
    ex.tokens(here.task).with_columns(score=pl.lit(0.5)).write_parquet(here.home / "scores.parquet")
    _fill_sheet(here)
    return here


def _fill_sheet(here: Place) -> None:
    """Items that were drawn, and a sheet with answers to all of them."""
    sheets = here.home / "sheets"
    write_sheets(sheets, draw_sample(Path(here.models[0]), here.task, Draw(count=4, top=1)), "csv")
    with (sheets / "sheet.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = [row | {"relevant": "yes"} for row in csv.DictReader(file)]
    with (here.home / "ann.csv").open("w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def drawn(count: int, seed: int, here: Place) -> Iterator[Request]:
    """So many requests, the same for the same seed."""
    makers = [make for make, share in SHARES.items() for _ in range(share)]
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        yield chance.choice(makers)(chance, here, here.home / f"out{number}")


def _command(chance: random.Random, words: Sequence[str], wrong: Sequence[Sequence[str]]) -> Request:
    """A command as it is meant, or with something wrong: an option's value, one that is none, or a word too much."""
    valid = chance.random() < SOUND
    line = (*words, *(() if valid else chance.choice([*wrong, ["--no-such-option"], ["too", "much", "of", "it"]])))
    return Request(f"exegete {' '.join(map(repr, line))}", valid, None, line)


def _some(chance: random.Random, *options: str) -> list[str]:
    """Some of these options; a space is between its name and its value."""
    return [word for option in options if chance.random() < 0.3 for word in option.split(" ")]


def _each(option: str, *values: str) -> list[list[str]]:
    return [[option, value] for value in values]


def _listing(chance: random.Random, here: Place, out: Path) -> Request:  # noqa: ARG001
    return _command(chance, ["ls", *_some(chance, chance.choice(KINDS), "--json")], [["nothing"]])


def _help(chance: random.Random, here: Place, out: Path) -> Request:  # noqa: ARG001
    line = (chance.choice(COMMANDS), "--help")
    return Request(f"exegete {' '.join(line)}", True, None, line)


def _train(chance: random.Random, here: Place, out: Path) -> Request:
    training = chance.choice(["epochs=1", "epochs=1,lr=0.01", "epochs=1,metric=accuracy", "epochs=1,batch=7"])
    words = ["train", "--task", here.task, "--model", chance.choice(MODELS), "--out", str(out), "-q"]
    words += ["--training", training, *_some(chance, f"--seed {chance.randrange(9)}", "--json")]
    wrong = _each("--training", "lr=inf", "lr=nan", "lr=-1", "epochs=0", "epochs", "nothing=1", "batch=0.5", "metric=x")
    wrong += _each("--task", "nowhere", "file:nowhere.csv", *NONSENSE[:4])
    wrong += _each("--model", "nothing", "bilstm:hidden=0", "bilstm:hidden=x", "bilstm:scale=inf", *NONSENSE[:4])
    wrong += [["--seed", "x"], ["--out", here.at("news.csv")], ["--device", "cuda:99"]]
    return _command(chance, words, wrong)


def _explain(chance: random.Random, here: Place, out: Path) -> Request:
    some = ["attention", *chance.sample(METHODS[1:], chance.randint(0, 2))]  # for any quantity, unlike lrp
    methods, text = ",".join(some), chance.choice(TEXTS)
    words = ["explain", "--model", chance.choice([*here.models, here.at("run")]), "--with", methods, "-q"]
    words += chance.choice([[text], [text, "--diff", chance.choice(TEXTS)], ["--file", here.at("texts.txt")]])
    words += chance.choice([[], ["--target", CLASSES[0]], ["--target", CLASSES[0], "--contrast", CLASSES[1]]])
    words += _some(chance, "--of probability", "--by sentence", "--json", "--no-color", f"--html {out}.html")
    wrong = [*_each("--target", *NONSENSE), ["--contrast", "nothing"], ["--of", "x"], ["--by", "x"], ["--step", "0"]]
    wrong += [["--model", "nowhere"], ["--run", "nowhere"], ["--file", "nowhere"], ["--html", here.at("run")]]
    return _command(chance, words, [*wrong, ["--with", "nothing"]])


def _words(chance: random.Random, here: Place, out: Path) -> Request:
    texts = str(chance.randint(1, 30))
    anew = ["--model", chance.choice(here.models), "--task", here.task, "--texts", texts]
    words = ["words", *chance.choice([[here.at("run")], anew]), "-q"]
    words += _some(chance, "--least 2", "--rows 3", "--json", f"--csv {out}.csv", f"--figure {out}.svg")
    wrong = [["--least", "0"], ["--rows", "x"], ["--figure", "x.png"], ["--with", "nothing"], ["--csv", here.at("run")]]
    return _command(chance, words, wrong)


def _tokens(chance: random.Random, here: Place, out: Path) -> Request:
    file = f"{out}.{chance.choice(['parquet', 'csv', 'jsonl'])}"
    words = ["tokens", "--task", here.task, "--out", file, *_some(chance, "--split dev", "--json")]
    wrong = [["--split", "x"], ["--task", "nowhere"], ["--out", "x.doc"], ["--out", f"{here.at('news.csv')}/x.csv"]]
    return _command(chance, words, wrong)


def _annotate(chance: random.Random, here: Place, out: Path) -> Request:
    if chance.random() < 0.3:
        read = ["annotate", "read", here.at("sheets"), here.at("ann.csv")]
        read += _some(chance, "--strict", "--json", f"--out {out}.csv")
        return _command(chance, read, [[here.at("news.csv")], ["nowhere"], ["--out", here.at("run")]])
    model = chance.choice([*here.models, here.at("run")])
    words = ["annotate", "draw", "--model", model, "--out", str(out), "--count", str(chance.randint(1, 9))]
    words += _some(chance, "--format both", "--prediction original", "--labels n/a=none", f"--task {here.task}")
    wrong = _each("--count", "0", "999", "x") + _each("--labels", "x=y", "x") + _each("--top", "99", "0")
    wrong += [["--format", "x"], ["--model", "nowhere"], ["--prediction", "x"], ["--task", "nowhere"]]
    return _command(chance, [*words, "--top", str(chance.randint(1, 2))], wrong)


def _run(chance: random.Random, here: Place, out: Path) -> Request:  # noqa: ARG001
    words = ["run", here.at("study.toml"), "--out", here.at("run"), "--workers", "1", "-q"]
    words += _some(chance, "--seed 0", "--model average*", "--json")
    wrong = [["--seed", "9"], ["--model", "nothing"], ["--task", "x"], ["--workers", "0"], ["--engine", "x"]]
    wrong += [["--device", "x"], ["--out", here.models[0]], ["--out", f"{here.at('news.csv')}/x"]]
    return _command(chance, words, wrong)


def _audit(chance: random.Random, here: Place, out: Path) -> Request:  # noqa: ARG001
    words = ["audit", here.at("study.toml"), "--out", here.at("run"), "--workers", "1", "-q"]
    words += _some(chance, f"--goal {chance.choice(['faithful', 'plausible', 'sanity'])}", "--json", "--definitions")
    wrong = [["--goal", "x"], ["--quick"], ["--strict"], ["--criteria", "x"], ["--task", "x"], ["--retrain"]]
    return _command(chance, words, [*wrong, ["--scores", "nowhere"], *_each("--fail-on", "", "x")])


def _report(chance: random.Random, here: Place, out: Path) -> Request:
    words = ["report", here.at("run"), *_some(chance, f"--out {out}.html", f"--results {out}")]
    return _command(chance, words, [["--out", here.at("run")], ["--results", here.at("news.csv")]])


def _calibrate(chance: random.Random, here: Place, out: Path) -> Request:  # noqa: ARG001
    """One draw of one family, which is audited once and then read."""
    words = ["calibrate", "--draws", "1", "--quick", "--family", "sharp cue", "--out", here.at("calibration"), "-q"]
    wrong = [["--draws", "0"], ["--family", "nothing"], ["--criteria", "x"], ["--out", here.at("news.csv")]]
    return _command(chance, [*words, "--workers", "1", *_some(chance, "--json")], [*wrong, ["--engine", "x"]])


def _reproduce(chance: random.Random, here: Place, out: Path) -> Request:
    """A paper's numbers beside those that are kept."""
    words = ["reproduce", chance.choice(PUBLISHED), "--from", RESULTS, "--out", str(out)]
    words += _some(chance, "--json", f"--results {out}")
    return _command(chance, words, [["--quick"], ["--from", "nowhere"], ["--out", here.at("news.csv")]])


def _serve(chance: random.Random, here: Place, out: Path) -> Request:  # noqa: ARG001
    """The command in a process of its own; its page is read, and Ctrl-C ends it."""
    line = ["serve", chance.choice([*here.models, here.at("run")]), "--port", "0", "--no-open"]

    def ask() -> None:
        command = [sys.executable, "-c", "from exegete.cli import main; main()", *line]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                with build_opener(HTTPCookieProcessor()).open(server.stdout.readline().strip()) as page:
                    assert "</html>" in page.read().decode("utf8")
            finally:
                server.send_signal(signal.SIGINT)
                said = server.communicate()[1]
        assert server.returncode == 0, said
        assert "Traceback" not in said, said

    return Request(f"exegete {line}", True, ask)


def _refused(chance: random.Random, here: Place, out: Path) -> Request:
    """Of commands that take long, or don't end, what they refuse."""
    nonsense = chance.choice(NONSENSE)
    line = chance.choice([
        ["serve", "nowhere"], ["serve", here.models[0], "--port", "x"], ["serve", here.at("news.csv")],
        ["calibrate", "--draws", "0"], ["calibrate", "--family", "nothing", "--out", str(out)],
        ["calibrate", "--criteria", "x", "--out", str(out)], ["reproduce", "nothing"],
        ["reproduce", "jain_wallace_2019:nothing", "--from", here.at("run")],
        ["reproduce", "meister_2021", "--from", "nowhere"], ["annotate", "read", str(out), here.at("ann.csv")],
        ["report", nonsense], [nonsense], ["audit", nonsense], ["run", nonsense], [], ["annotate"],
    ])  # fmt: skip
    return Request(f"exegete {line}", False, None, tuple(line))


def _experiment(chance: random.Random, here: Place, out: Path) -> Request:
    name, model = chance.choice([*ASKED]), chance.choice(here.models)
    entry, valid = {"name": name, "texts": 6} | ASKED[name], chance.random() < SOUND
    if not valid:
        entry |= chance.choice([{"name": "nothing"}, {"x": 1}, {"texts": "x"}, {"texts": -1}])
    return Request(f"ex.ask({entry}, {model})", valid, lambda: ex.ask(entry, model, here.task, out=out))


def _study(chance: random.Random, here: Place, out: Path) -> Request:
    given: dict[str, Any] = {"tasks": [here.task], "models": [here.models[0]], "experiments": ["permutation"]}
    valid = chance.random() < SOUND
    given |= {} if valid else {chance.choice([*given]): chance.choice([[], "x", [7], ["nothing"], None])}
    return Request(f"ex.Study({given}).run()", valid, lambda: ex.Study(**given).run(out, workers=1))


class Adding(ex.OwnPooling):
    """Adds up the words' classes, by weights of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.classes, self.heights = nn.Embedding(500, 2), nn.Linear(2, 1)

    def embed(self, tokens: Tensor) -> Tensor:
        """[batch, word, class]."""
        embedded: Tensor = self.classes(tokens)
        return embedded

    def states(self, embedded: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG002
        """As they are embedded."""
        return embedded

    def scores(self, states: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG002
        """[batch, word]."""
        heights: Tensor = self.heights(states)
        return heights.squeeze(-1)

    def decode(self, context: Tensor) -> Tensor:
        """As it was pooled."""
        return context


def _wrap(chance: random.Random, here: Place, out: Path) -> Request:  # noqa: ARG001
    """Models from memory, and one prediction of each explained."""
    import transformers

    text = chance.choice([text for text in TEXTS if len(text) < MOST])
    kind = chance.choice(["model", "pipeline", "module"])

    def ask() -> None:
        if kind == "module":
            found = ex.wrap(Adding(), task=here.task)
        else:
            base, tokenizer = bert(CLASSES)
            pipe = transformers.pipeline("text-classification", model=base, tokenizer=tokenizer)
            found = ex.wrap(pipe) if kind == "pipeline" else ex.wrap(base, tokenizer=tokenizer)
        assert ex.explain(found, text, ["attention"])["attention"].scores

    return Request(f"ex.explain(ex.wrap({kind}), {text!r})", True, ask)


def _wrap_nothing(chance: random.Random, here: Place, out: Path) -> Request:  # noqa: ARG001
    """Modules that need an adapter, and adapters that are none."""
    adapter, module = chance.choice([None, 7, int, "x"]), chance.choice([7, "x", nn.Linear(2, 2)])
    return Request(f"ex.wrap({module}, {adapter!r})", False, lambda: ex.wrap(module, adapter))


def _read_run(chance: random.Random, here: Place, out: Path) -> Request:  # noqa: ARG001
    """An audit that is there, its frames and its report."""

    def ask() -> None:
        found = ex.audit(study=here.at("study.toml"), out=here.at("run"), workers=1)
        found.save(f"{out}.csv")
        assert found["agreement"].summary.height
        ex.write_report(found, f"{out}.html")

    return Request("ex.audit(…).save, [experiment], ex.write_report", True, ask)


class _LeftOut:
    """An argument that is not given."""


def _call(name: str, valid: dict[str, Sequence[Any]], wrong: dict[str, Sequence[Any]]) -> Maker:
    """Requests of a function: every argument is one of those that are valid; in some, one argument is wrong."""

    def make(chance: random.Random, here: Place, out: Path) -> Request:
        def at(value: Any) -> Any:
            named = {"{home}": str(here.home), "{task}": here.task, "{out}": str(out)}
            for mark, path in named.items() if isinstance(value, str) else ():
                value = value.replace(mark, path)
            return value

        given, sound = {key: chance.choice(values) for key, values in valid.items()}, chance.random() < SOUND
        if not sound:
            key = chance.choice([*wrong])
            given[key] = chance.choice(wrong[key])
        given = {key: at(value) for key, value in given.items() if value is not _LeftOut}
        return Request(f"ex.{name}({given})", sound, lambda: getattr(ex, name)(**given))

    return make


ANY_MODEL = [f"{{home}}/model{number}" for number in range(len(MODELS))]
ANY_METHODS = [["attention"], ["lrp", "attention"], ["gradient:norm=l2"], ["leave_one_out", "random"]]
NO_NAMES: tuple[Any, ...] = (7, b"x", [], {}, object(), "", "nowhere", "a\nb", float("nan"))
NO_METHODS = (["nothing"], [7], 7, [""], ["attention:x=1"])
NO_COUNT = (0, -1, "x", 1.5, True, float("nan"))
NO_TRAINING = ({"lr": float("inf")}, {"x": 1}, "epochs", 7)
AT, TASK = {"model": ANY_MODEL, "task": ["{task}"]}, ["{task}"]
SOME_TEXTS = [f"{'abc'[i % 3]} word x{i}" for i in range(60)]
CALLS: dict[Maker, int] = {
    _call("load", {"folder": ANY_MODEL}, {"folder": NO_NAMES, "device": ("x", 7)}): 3,
    _call("tokens", {"task": TASK, "splits": [["test"], ["dev", "test"]]}, {"task": NO_NAMES, "splits": (["x"], 7)}): 2,
    _call("train", {"model": MODELS, "task": TASK, "training": [{"epochs": 1}, "epochs=1"], "seed": [0, 1]},
          {"model": NO_NAMES, "task": NO_NAMES, "training": NO_TRAINING, "seed": ("x", 1.5)}): 3,
    _call("task", {"texts": [SOME_TEXTS], "labels": [["x", "y", "n/a"] * 20]},
          {"texts": ([], None, "a b", [1, 2]), "labels": ([], ["x"], None, 7)}): 3,
    _call("score", AT | {"methods": ANY_METHODS, "texts": [1, 3, _LeftOut]},
          {"model": NO_NAMES, "task": NO_NAMES, "methods": NO_METHODS, "texts": NO_COUNT, "split": ("x", 7)}): 5,
    _call("words", AT | {"methods": ANY_METHODS[1:2], "least": [1, 3], "texts": [9, _LeftOut]},
          {"model": NO_NAMES, "methods": NO_METHODS, "least": ("x", 1.5), "texts": NO_COUNT}): 4,
    _call("explain",
          {"model": [*ANY_MODEL, "{home}/run"], "text": TEXTS, "methods": ANY_METHODS,
           "target": [_LeftOut, *CLASSES], "of": ["logit", "probability"]},
          {"model": NO_NAMES, "text": (7, None, "", []), "methods": NO_METHODS, "target": ("x", 7), "of": ("x",),
           "contrast": ("x", 7), "step": (0, "x")}): 9,
    _call("lab", {"model": ANY_MODEL, "text": TEXTS}, {"text": (7, None, ""), "site": ("x", 7), "model": ("no", 7)}): 4,
    _call("audit",
          {"study": ["{home}/study.toml"], "out": ["{home}/run"], "workers": [1],
           "goal": ["faithful", "sanity", "plausible"]},
          {"study": NO_NAMES, "goal": ("x", 7), "criteria": ("x", 7), "fail_on": ("x", ["x"]), "workers": NO_COUNT,
           "scores": ("x", 7)}): 2,
}  # fmt: skip
SHARES: dict[Maker, int] = CALLS | {
    _listing: 3, _help: 2, _train: 3, _explain: 12, _words: 5, _tokens: 4, _annotate: 5, _run: 2, _audit: 2, _report: 2,
    _refused: 4, _experiment: 4, _study: 1, _read_run: 1, _wrap: 2, _wrap_nothing: 1, _calibrate: 1, _reproduce: 1,
    _serve: 1,
}  # fmt: skip
