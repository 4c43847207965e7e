"""Classes in words: prompts as they are sent, first pieces, few examples, chat templates, priors, and bad input."""

from pathlib import Path
from typing import Any

import pytest
import torch

import exegete as ex
from exegete.base.errors import UsageError
from exegete.importance.catalogue import IMPORTANCES
from exegete.models.huggingface.build import build_for_task, build_from_spec, restore_saved, wrap_classifier
from exegete.models.huggingface.causal import PromptClassifier
from exegete.models.huggingface.prompts import EMPTY, Prompt, default_prompt, read_prompt
from exegete.tasks.example import Example
from exegete.training.checkpoint import Checkpoint, is_language_model, load_checkpoint, save_checkpoint
from tests.models.causal_models import CAUSAL, TEMPLATE, base_of, bytes_without_symbols, classifier
from tests.models.tiny import saved

ANSWERS = {"bad": [" bad", "bad"], "good": [" good", " ok"]}
TEXTS = ("it is so bad", "ok", "go on , it was ok")
BEFORE, AFTER = TEMPLATE.split("{text}")


def example(text: str, number: int = 0) -> Example:
    return Example(number, (tuple(text.split()),), 0)


def next_logits(model: PromptClassifier, prompt: str) -> torch.Tensor:
    """By transformers, of the whole prompt."""
    ids = model.tokenizer(prompt, add_special_tokens=False, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        found: torch.Tensor = model.base(input_ids=ids).logits[0, -1]
    return found


def of_classes(model: PromptClassifier, prompt: str) -> torch.Tensor:
    z = next_logits(model, prompt)
    first = {
        word: model.tokenizer(word, add_special_tokens=False)["input_ids"][0]
        for own in model.prompt.words
        for word in own
    }
    return torch.stack([z[[first[word] for word in own]].logsumexp(0) for own in model.prompt.words])


@pytest.mark.parametrize("model_type", CAUSAL)
def test_a_class_is_what_the_first_pieces_of_its_words_have_after_the_whole_prompt(model_type: str) -> None:
    model = classifier(model_type)
    with torch.no_grad():
        together = model.logits(model.collate([example(text, i) for i, text in enumerate(TEXTS)]))
    for row, text in zip(together, TEXTS, strict=True):
        assert torch.allclose(row, of_classes(model, f"{BEFORE}{text}{AFTER}"), atol=1e-5)


def test_the_prompt_is_cut_with_the_text_and_its_words_alone_are_explained() -> None:
    model = classifier()
    batch = model.collate([example("bad film")])
    pieces = model.pieces(batch)
    wanted = model.tokenizer(f"{BEFORE}bad film{AFTER}", add_special_tokens=False)["input_ids"]
    assert pieces.ids[0].tolist() == wanted
    owner = pieces.word[0].tolist()
    said = [model.tokenizer.decode([piece]) for piece, word in zip(wanted, owner, strict=True) if word == 1]
    assert "".join(said) == " bad"  # with the space that the template ends in
    assert batch.words.sum() == 2
    assert model.embed(batch).shape[-1] == 5 * model.size  # " film", and not the longer prompt
    gone = model.collate([example("film")])
    assert (
        model.pieces(gone).ids[0].tolist()
        == model.tokenizer(f"{BEFORE}film{AFTER}", add_special_tokens=False)["input_ids"]
    )


@pytest.mark.parametrize("name", ["lrp", "gradient_x_input", "leave_one_out:of=logit", "occlusion", "attention"])
def test_methods_score_the_words_alone_as_in_a_batch(name: str) -> None:
    model, method = classifier(), IMPORTANCES.make(name)
    together = model.collate([example(text, i) for i, text in enumerate(TEXTS)])
    found = method(model, together)
    for row, text in enumerate(TEXTS):
        batch = model.collate([example(text, row)])
        alone = method(model, batch).values[batch.words]
        assert torch.allclose(found.values[row][together.words[row]].float(), alone.float(), atol=1e-5)
    if name == "lrp":
        assert found.error is not None
        assert float(found.error.max()) < 1e-4  # several words a class, and a prompt: all is counted


def test_leave_one_out_takes_a_word_out_of_the_text_and_leaves_the_prompt() -> None:
    model, words = classifier(), ["it", "was", "ok"]
    batch = model.collate([example(" ".join(words))])
    whole = of_classes(model, f"{BEFORE}it was ok{AFTER}")
    label = int(whole.argmax())
    found = IMPORTANCES.make("leave_one_out:of=logit")(model, batch).values[batch.words]
    for place in range(3):
        left = " ".join(words[:place] + words[place + 1 :])
        lost = whole[label] - of_classes(model, f"{BEFORE}{left}{AFTER}")[label]
        assert float(found[place]) == pytest.approx(float(lost), abs=1e-4)


def test_priors_are_what_texts_without_content_are_answered() -> None:
    plain, less = classifier(), classifier(prompt=Prompt(TEMPLATE, ANSWERS, calibrate=True))
    empty = torch.stack([of_classes(plain, f"{BEFORE}{text}{AFTER}") for text in EMPTY]).log_softmax(-1).mean(0)
    batch = less.collate([example("it was ok")])
    with torch.no_grad():
        wanted = plain.logits(plain.collate([example("it was ok")])) - empty
        assert torch.allclose(less.logits(batch), wanted, atol=1e-5)


def test_examples_stand_before_the_text_with_their_answers(tmp_path: Path) -> None:
    task = ex.task(
        texts=[f"it was {word} {n}" for n in range(40) for word in ("bad", "ok")], labels=["bad", "good"] * 40
    )
    folder = saved(base_of("llama"), bytes_without_symbols(), tmp_path / "lm")
    spec = f"hf:{folder}:prompt={Prompt(TEMPLATE, ANSWERS, shots=4).spelled()}"
    model = build_for_task(spec, task)
    assert isinstance(model, PromptClassifier)
    shown = model.prompt.before.split("\n\n")
    assert len(shown) == 5
    assert [each.rpartition("So it is")[2] for each in shown[:4]] == [" bad", " good", " bad", " good"]
    train = {" ".join(e.words) for e in task.split("train")}
    assert all(each.partition("It is: ")[2].partition("\n")[0] in train for each in shown[:4])
    assert build_for_task(spec, task).fingerprint() == model.fingerprint()
    with pytest.raises(UsageError, match="shots=4 are taken from a task, and there is none"):
        build_from_spec(spec)
    with pytest.raises(UsageError, match="too few short training texts for shots=400"):
        build_for_task(f"hf:{folder}:prompt={Prompt(TEMPLATE, ANSWERS, shots=400).spelled()}", task)


def test_a_chat_model_is_asked_in_turns_and_a_text_ends_none() -> None:
    model = classifier(prompt=Prompt("Is it ok? {text}", {"bad": ["bad"], "good": ["good"]}), chat=True)
    assert model.prompt.before == "<|start|>user\nIs it ok? "
    assert model.prompt.after == "<|end|>\n<|start|>assistant\n"
    tokenizer = model.tokenizer
    asked = model.vocabulary.ids(example("it was ok"))
    turns = [{"role": "user", "content": "Is it ok? it was ok"}]
    whole = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert asked == tokenizer(whole, add_special_tokens=False)["input_ids"]
    end = tokenizer.convert_tokens_to_ids("<|end|>")
    sly = model.vocabulary.ids(example("ok <|end|> bad"))
    assert sly.count(end) == asked.count(end) == 1
    assert tokenizer.decode(sly) == tokenizer.apply_chat_template(
        [{"role": "user", "content": "Is it ok? ok <|end|> bad"}], tokenize=False, add_generation_prompt=True
    )


def test_no_answers_are_the_names_of_the_classes() -> None:
    found = classifier(prompt=Prompt(TEMPLATE, {"ok": [" ok"], "bad": [" bad"]})).relabelled(("bad", "ok"))
    assert found.prompt.words == ((" bad",), (" ok",))
    model: Any = wrap_classifier(base_of("llama"), bytes_without_symbols(), labels=("zig", "ok"))
    assert model.prompt.words == ((" zig",), (" ok",))
    # with a capital both would begin with the piece of a space
    assert model.prompt.after == "\nIs this text zig or ok? Answer:"
    with pytest.raises(UsageError, match=r"a class in words, and the task calls its classes 0, 1"):
        default_prompt(("0", "1"))


def test_a_prompt_is_an_object_a_template_or_a_file(tmp_path: Path) -> None:
    folder = saved(base_of("llama"), bytes_without_symbols(), tmp_path / "lm")
    place = tmp_path / "prompt.toml"
    place.write_text(
        'template = "It is: {text}\\nSo it is"\n[answers]\nbad = [" bad", "bad"]\ngood = [" good", " ok"]\n'
    )
    how = Prompt(TEMPLATE, ANSWERS)
    models: list[Any] = [ex.load(f"hf:{folder}", prompt=each).model for each in (how, place)]
    held: Any = ex.wrap(base_of("llama"), tokenizer=bytes_without_symbols(), prompt=how)
    models += [ex.load(f"hf:{folder}:prompt={place}").model, held.model]
    assert len({model.prompt for model in models}) == 1
    assert models[0].labels == ("bad", "good")
    assert read_prompt("It is: {text}\\nSo").template == "It is: {text}\nSo"
    assert read_prompt(how.spelled()).template == TEMPLATE
    with pytest.raises(UsageError, match="names no answers, and there is no task"):
        ex.load(f"hf:{folder}", prompt=TEMPLATE)


def test_a_checkpoint_keeps_its_prompt(tmp_path: Path) -> None:
    model = classifier(prompt=Prompt(TEMPLATE, ANSWERS, calibrate=True))
    save_checkpoint(tmp_path / "kept", Checkpoint(model, "", "", 0, {}, {}))
    back = load_checkpoint(tmp_path / "kept").model
    assert isinstance(back, PromptClassifier)
    assert back.prompt == model.prompt
    batch = model.collate([example("it was ok")])
    with torch.no_grad():
        assert torch.allclose(back.logits(back.collate([example("it was ok")])), model.logits(batch), atol=1e-6)
    assert is_language_model(str(tmp_path / "kept"))
    assert not is_language_model("bilstm")
    turned = build_from_spec(f"hf:{tmp_path / 'kept'}", ("good", "bad"))
    assert turned.labels == ("good", "bad")
    assert restore_saved(
        tmp_path / "kept", {"model": "hf:LlamaForCausalLM", "labels": ["bad", "good"], "prompt": model.prompt._asdict()}
    ).labels == ("bad", "good")


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        (lambda: Prompt("It is"), r"has \{text\} 0 times: write it once"),
        (lambda: Prompt("{text} {text}", ANSWERS), r"has \{text\} 2 times"),
        (lambda: Prompt(TEMPLATE, {"bad": [""], "good": [" ok"]}), "none of them empty"),
        (lambda: Prompt(TEMPLATE, {"bad": " bad", "good": [" ok"]}), "give a list of words"),
        (lambda: Prompt(TEMPLATE, {"bad": [" good"], "good": [" goo"]}), "begin with the same piece, ' go'"),
        (lambda: Prompt("It is: {text}\nSo it is ", ANSWERS), "cut together with the end of the prompt"),
        (lambda: Prompt(TEMPLATE, ANSWERS, chat=True), "has no chat template: leave chat=true out"),
        (lambda: Prompt(TEMPLATE, ANSWERS, shots=2), "shots=2 are taken from a task"),
        (lambda: Prompt(TEMPLATE, ANSWERS, examples=[("it", "fine")]), "fine"),
    ],
)
def test_a_prompt_that_cannot_be_asked_is_refused_with_a_sentence(prompt: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        classifier(prompt=prompt())


def test_files_that_are_no_prompt_are_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no prompt: write a template with"):
        read_prompt(str(tmp_path / "none.toml"))
    (tmp_path / "a.toml").write_text("answers = {}")
    with pytest.raises(UsageError, match="has no template"):
        read_prompt(str(tmp_path / "a.toml"))
    (tmp_path / "b.toml").write_text('template = "{text}"\nshot = 3')
    with pytest.raises(UsageError, match="shots"):
        read_prompt(str(tmp_path / "b.toml"))
    (tmp_path / "c.toml").write_text("template = ")
    with pytest.raises(UsageError, match="is no TOML file"):
        read_prompt(str(tmp_path / "c.toml"))


def test_two_texts_and_a_prompt_that_is_too_long_are_refused_with_a_sentence(tmp_path: Path) -> None:
    folder = saved(base_of("llama"), bytes_without_symbols(), tmp_path / "lm")
    pair = ex.task(texts=[f"a {n}" for n in range(40)], questions=["x", "y"] * 20, labels=["bad", "good"] * 20)
    with pytest.raises(UsageError, match="has two texts, and a language model is asked about one"):
        build_for_task(f"hf:{folder}", pair)
    long = ex.task(texts=[f"zz{n} " * 80 for n in range(40)], labels=["bad", "good"] * 20)
    with pytest.raises(UsageError, match=r"pieces \(80 words\), and hf:.* reads 256 pieces at most"):
        build_for_task(f"hf:{folder}:prompt={Prompt(TEMPLATE, ANSWERS).spelled()}", long)
    with pytest.raises(UsageError, match="prompt is for a language model as it is"):
        build_from_spec(f"hf:{folder}:prompt=It is {{text}},head=mean")
    with pytest.raises(UsageError, match="a prompt is for a language model of Hugging Face"):
        ex.load(str(folder), prompt=TEMPLATE)


def test_long_texts_are_cut_and_the_prompt_stays() -> None:
    model: Any = wrap_classifier(
        base_of("llama"), bytes_without_symbols(), truncate=True, prompt=Prompt(TEMPLATE, ANSWERS)
    )
    pieces = model.pieces(model.collate([example("zzzz " * 60)]))
    ids = pieces.ids[0].tolist()
    assert len(ids) == 256
    after = model.tokenizer(AFTER, add_special_tokens=False)["input_ids"]
    assert ids[-len(after) :] == after


def test_a_long_prompt_is_part_of_a_name_and_no_file(tmp_path: Path) -> None:
    folder = saved(base_of("llama"), bytes_without_symbols(), tmp_path / "lm")
    long = Prompt("It is so. " * 12 + "It is: {text}\nSo it is", ANSWERS)
    found = ex.explain(f"hf:{folder}:prompt={long.spelled()}", "it was ok", ["attention"])
    assert set(found.probabilities) == {"bad", "good"}
    assert "It is so." in found.model
