"""Prompts: a class asked for in words. A text stands in a template, and the class is the word that comes next.

    template = "Review: {text}\\nSentiment:"      answers: negative = [" negative"], positive = [" positive"]

A prompt is a Python object, a TOML file with these keys, or a template alone, whose answers are the names of the
classes. Few-shot examples (`shots`) stand before it, classes in turns; a chat model is asked in the turns of its chat
template. What is explained are the words of `{text}`: all else stays as it is.

A model has its own bias towards some answers; `calibrate` takes away what it answers to texts without content
(Zhao et al. 2021, section 5): log p(class | text) − log p(class | "N/A", "", "[MASK]").
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.base.names import Spec, parse, validate
from exegete.base.noise import stable_seed
from exegete.models.huggingface.labels import class_order
from exegete.tasks.example import Example, Task

TEXT = "{text}"
EMPTY = ("N/A", "", "[MASK]")  # texts without content (Zhao et al. 2021, section 5)
LONGEST = 40  # words of an example that is shown
BETWEEN = "\n\n"  # of examples
_PLACE = "⟦text⟧"  # where the text comes in a chat, while its template is filled in
_SAFE = " {}?!'()/"  # what stands in a name as it is


@dataclass(frozen=True)
class Prompt:
    """How a class is asked for."""

    template: str  # with {text} once
    answers: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by class: words; its name, unless given
    shots: int = 0  # examples with their answers before it, from the task's training texts
    chat: bool | None = None  # in the turns of the chat template; None: where the tokenizer has one
    calibrate: bool = False  # less what it answers to texts without content
    examples: Sequence[tuple[str, str]] = ()  # text and class of those that are shown, instead of `shots`

    def __post_init__(self) -> None:
        if self.template.count(TEXT) != 1:
            raise UsageError(
                f"the prompt '{self.template[:60]}' has {TEXT} {self.template.count(TEXT)} times: write it once, where "
                "the text comes"
            )
        if self.shots < 0 or (self.shots and self.examples):
            raise UsageError("shots is how many examples are taken from the task: 0 or more, and none beside examples")
        for label, words in self.answers.items():
            if isinstance(words, str) or not words or not all(isinstance(word, str) and word.strip() for word in words):
                raise UsageError(
                    f"the answers of class '{label}' are {words!r:.60}: give a list of words, none of them empty"
                )

    def spelled(self) -> str:
        """As the value of a setting `prompt=…`."""
        return quote(json.dumps(asdict(self)), safe=_SAFE)


def spelled_template(written: str) -> str:
    """A template, or the name of a file with a prompt, as the value of a setting."""
    return quote(written, safe=_SAFE) if TEXT in written else written


def name_with_template(model: str) -> str:
    """A model's name for people: its prompt as it is written, of which only the template.

    >>> name_with_template("hf:gpt2:prompt=Review%3A {text}%0ASentiment%3A")
    'hf:gpt2:prompt=Review: {text}\\\\nSentiment:'
    """
    name, settings = parse(model)
    written = settings.get("prompt", "")
    said = unquote(written)
    if TEXT not in said:
        return model
    template = json.loads(said)["template"] if said.startswith("{") and not said.startswith(TEXT) else said
    return str(Spec(name, settings | {"prompt": template.replace("\n", "\\n")}))


def read_prompt(written: str) -> Prompt:
    """The prompt of a setting: a TOML file, a template, or a prompt as it is spelled."""
    said = unquote(written)
    if said.startswith("{") and not said.startswith(TEXT):
        return _prompt(json.loads(said), "the prompt")
    if TEXT in said:
        return Prompt(said.replace("\\n", "\n"))
    path = Path(said).expanduser()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(
            f"'{said}' is no prompt: write a template with {TEXT}, or name a TOML file with template = \"…{TEXT}…\""
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ExegeteError(f"the prompt {path} can't be read ({error}): give a UTF-8 file") from None
    if path.suffix != ".toml":
        return Prompt(text)
    try:
        return _prompt(tomllib.loads(text), str(path))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is no TOML file ({error}): mend it") from None


def _prompt(facts: Mapping[str, Any], owner: str) -> Prompt:
    if "template" not in facts:
        raise UsageError(f'{owner} has no template: write template = "…{TEXT}…"')
    pairs = [tuple(each.values()) if isinstance(each, dict) else tuple(each) for each in facts.get("examples", ())]
    made: Prompt = validate(Prompt, {**facts, "examples": pairs}, owner)
    return made


def default_prompt(labels: Sequence[str]) -> Prompt:
    """A question that names the classes, where nobody wrote one.

    >>> default_prompt(("negative", "positive")).template
    'Text: {text}\\nIs this text negative or positive? Answer:'
    """
    if any(label.strip().isdigit() for label in labels):
        raise UsageError(
            f"a language model is asked for a class in words, and the task calls its classes {', '.join(labels)}: "
            f'write a prompt with answers, a TOML file with template = "…{TEXT}…" and [answers], and name it, as in '
            "prompt=FILE"
        )
    *first, last = labels
    return Prompt(f"Text: {TEXT}\nIs this text {', '.join(first)} or {last}? Answer:", chat=False)


def with_shots(prompt: Prompt, task: Task) -> Prompt:
    """The prompt with examples of a task: short training texts, a keyed choice, of every class in turns."""
    if not prompt.shots:
        return prompt
    if not task.labelled or not task.splits.get("train"):
        raise UsageError(f"'{task.name}' has no labelled training texts to show: leave shots={prompt.shots} out")
    short = [e for e in task.split("train") if 0 < len(e.all_words) <= LONGEST]
    short.sort(key=lambda e: stable_seed("shots", e.id))
    of_class = [[e for e in short if e.label == place] for place in range(len(task.labels))]
    turns = [(place % len(of_class), place // len(of_class)) for place in range(prompt.shots)]
    if any(number >= len(of_class[label]) for label, number in turns):
        raise UsageError(f"'{task.name}' has too few short training texts for shots={prompt.shots}: show fewer")
    shown = tuple((text_of_example(of_class[label][number]), task.labels[label]) for label, number in turns)
    return replace(prompt, shots=0, examples=shown)


def text_of_example(example: Example) -> str:
    """The text of an example as people wrote it."""
    return "".join(example.written[0]).strip() if example.written else " ".join(example.words)


class FilledPrompt(NamedTuple):
    """A prompt for certain classes, filled in but for the text."""

    before: str
    after: str
    chat: bool  # the chat template writes all symbols; else the tokenizer's own come first
    words: tuple[tuple[str, ...], ...]  # of every class
    calibrate: bool = False

    @property
    def key(self) -> str:
        """Of all that it says."""
        return hashlib.sha256(repr(tuple(self)).encode()).hexdigest()[:8]

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> "FilledPrompt":
        """As a checkpoint keeps it."""
        return cls(**{**facts, "words": tuple(map(tuple, facts["words"]))})


def filled(prompt: Prompt, labels: Sequence[str], tokenizer: Any, who: str, given: str = "") -> FilledPrompt:
    """A prompt for these classes; `given` names them in the order of its answers, where they are called otherwise."""
    if prompt.shots:
        raise UsageError(f"shots={prompt.shots} are taken from a task, and there is none: give examples instead")
    before, after = prompt.template.split(TEXT)
    chat = prompt.chat if prompt.chat is not None else bool(tokenizer.chat_template)
    space = "" if chat or after[-1:].isspace() else " "
    words = _names(labels, space, tokenizer)
    if prompt.answers:
        theirs = list(prompt.answers)
        words = tuple(tuple(prompt.answers[theirs[place]]) for place in class_order(theirs, labels, given, who))
    first = {label: own[0] for label, own in zip(labels, words, strict=True)}
    if strange := sorted({label for _, label in prompt.examples} - set(labels)):
        raise unknown("class of an example", strange[0], labels)
    shown = [(text, first[label]) for text, label in prompt.examples]
    if chat:
        before, after = _in_turns(prompt.template, shown, tokenizer, who)
    else:
        before = "".join(f"{before}{text}{after}{answer}{BETWEEN}" for text, answer in shown) + before
    return FilledPrompt(before, after, chat, words, prompt.calibrate)


def _names(labels: Sequence[str], space: str, tokenizer: Any) -> tuple[tuple[str, ...], ...]:
    """What stands for classes where nobody says: their names, and with a capital letter where that tells them apart."""
    small = [f"{space}{label}" for label in labels]
    large = [f"{space}{label[:1].upper()}{label[1:]}" for label in labels]
    first = [tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in large]
    both = len(set(first)) == len(first)
    return tuple(tuple(dict.fromkeys(pair if both else pair[:1])) for pair in zip(small, large, strict=True))


def _in_turns(template: str, shown: Sequence[tuple[str, str]], tokenizer: Any, who: str) -> tuple[str, str]:
    """What the chat template writes before and after the text."""
    from jinja2 import TemplateError

    if not tokenizer.chat_template:
        raise UsageError(f"the tokenizer of {who} has no chat template: leave chat=true out")
    turns = [
        {"role": role, "content": said}
        for text, answer in (*shown, (_PLACE, ""))
        for role, said in (("user", template.replace(TEXT, text)), ("assistant", answer.strip()))
    ][:-1]
    try:
        said = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    except (TemplateError, ValueError, TypeError) as error:
        raise UsageError(
            f"the chat template of {who} refuses this prompt ({str(error).splitlines()[0]:.120}): write chat=false"
        ) from error
    if said.count(_PLACE) != 1:
        raise UsageError(f"the chat template of {who} changes what it is given: write chat=false")
    before, after = said.split(_PLACE)
    return before, after
