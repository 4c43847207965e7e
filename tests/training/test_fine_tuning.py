"""Fine-tuning: AdamW by its own recipe, frozen layers, resumed with what moved alone, read again by transformers."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

import exegete as ex
from exegete.base.errors import ExegeteError, UsageError
from exegete.interventions.uniform import Uniform
from exegete.models.build import build_model
from exegete.models.contract import Predictor
from exegete.models.huggingface.build import build_from_spec
from exegete.models.huggingface.model import HuggingFace
from exegete.runs.objects import is_by_name, name_of_model
from exegete.runs.training import fitting, train_model
from exegete.tasks.batching import batches_by_cost
from exegete.tasks.example import Example, Task
from exegete.training.checkpoint import load_checkpoint, load_state, save_state
from exegete.training.evaluation import evaluate, predict
from exegete.training.fit import Fit, rate_at
from exegete.training.pretrained import GivenModel
from exegete.training.settings import FINE_TUNING, TrainingSettings, by_default
from tests.models.spelled_models import spelled_task
from tests.models.tiny import bert, bert_folder

HEAD, POOL = ("head=cls,frozen=1", "head=attention,frozen=1")


def settings(**more: Any) -> TrainingSettings:
    return TrainingSettings(**(FINE_TUNING | {"lr": 5e-3, "head_lr": 2e-2, "metric": "accuracy", "batch": 8} | more))


def name(head: str = HEAD) -> str:
    return f"hf:{bert_folder()}:{head}"


@pytest.fixture
def task() -> Task:
    return spelled_task()


def tuned(task: Task, head: str = HEAD, **more: Any) -> Fit:
    fit = Fit(build_model(name(head), task), task, settings(**more), 0)
    fit.run()
    return fit


def weights(model: Predictor) -> dict[str, torch.Tensor]:
    assert isinstance(model, HuggingFace)
    return {key: tensor.clone() for key, tensor in model.state_dict().items()}


@pytest.mark.slow
def test_it_learns_and_frozen_layers_stay(task: Task) -> None:
    before = weights(build_model(name(), task))
    fit = tuned(task, epochs=12, patience=12, metric="loss")
    after = weights(fit.model)
    loss, untrained = (evaluate(m, task.split("train"))["loss"] for m in (fit.model, build_model(name(), task)))
    assert loss is not None
    assert untrained is not None
    assert loss < 0.8 * untrained
    for key, tensor in after.items():
        frozen = key.startswith(("base.embeddings.", "base.encoder.layer.0."))
        assert torch.equal(tensor, before[key]) == frozen, key


def test_groups_have_the_rates_and_decays_of_the_recipe(task: Task) -> None:
    model = build_model(name(POOL), task)
    fit = Fit(model, task, settings(attention_lr=1e-3), 0)
    names = {id(p): key for key, p in model.named_parameters()}
    met = set()
    for group in fit.optimiser.param_groups:
        for parameter in group["params"]:
            key = names[id(parameter)]
            met.add(key)
            new, deciding = not key.startswith("base."), ".query." in key or ".key." in key
            assert group["peak"] == (2e-2 if new else 1e-3 if deciding else 5e-3), key
            assert group["weight_decay"] == (0.01 if parameter.dim() > 1 else 0.0), key
    assert met == {key for key, p in model.named_parameters() if p.requires_grad}
    assert isinstance(fit.optimiser, torch.optim.AdamW)


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_the_rate_falls_on_a_line(share: float) -> None:
    given = TrainingSettings(schedule="linear", warmup_share=share)
    rates = [rate_at(t, 100, given) for t in range(1, 101)]
    peak = max(1, round(share * 100))
    assert rates[peak - 1] == max(rates) == 1.0
    assert all(a < b for a, b in pairwise(rates[:peak]))
    steps = {round(a - b, 9) for a, b in pairwise(rates[peak - 1 :])}
    assert len(steps) == 1
    assert rates[-1] == pytest.approx(steps.pop())  # one more step, and it is 0


@pytest.mark.slow
def test_it_goes_on_where_it_stopped_with_what_moved_alone(task: Task, tmp_path: Path) -> None:
    whole = tuned(task, epochs=2)
    half = Fit(build_model(name(), task), task, settings(epochs=2), 0)

    def stop(state: Any) -> None:
        save_state(tmp_path, state, "key")
        raise InterruptedError

    with pytest.raises(InterruptedError):
        half.run(save=stop)
    saved = load_state(tmp_path, "key")
    assert saved is not None
    kept = {key.removeprefix("model.") for key in saved.tensors if key.startswith("model.")}
    assert kept == {key for key, p in build_model(name(), task).named_parameters() if p.requires_grad}
    again = Fit(build_model(name(), task), task, settings(epochs=2), 0)
    again.resume(saved)
    again.run()
    assert all(torch.equal(tensor, weights(whole.model)[key]) for key, tensor in weights(again.model).items())


def test_an_intervention_acts_in_training(task: Task) -> None:
    plain = tuned(task, epochs=1)
    model = build_model(name(), task)
    fit = Fit(model, task, settings(epochs=1), 0, Uniform())
    fit.run()
    assert not torch.equal(plain.model.state_dict()["decoder.weight"], model.state_dict()["decoder.weight"])
    query = "base.encoder.layer.1.attention.self.query.weight"
    before = weights(build_model(name(), task))[query]
    moved = weights(model)[query]
    assert not torch.equal(weights(plain.model)[query], before)
    assert torch.allclose(moved, before, atol=1e-2)  # uniform weights have no gradient: queries only decay
    assert (moved / before).std() < 1e-4


def test_batches_are_of_texts_that_take_equally_long() -> None:
    costs = [5, 1, 9, 3, 3, 7, 2, 8]
    plain = list(batches_by_cost(costs, 3, 100))
    assert [[costs[i] for i in members] for members in plain] == [[1, 2, 3], [3, 5, 7], [8, 9]]
    tight = list(batches_by_cost(costs, 8, 9))
    assert all(len(members) * max(costs[i] for i in members) <= 9 for members in tight)
    shuffled = list(batches_by_cost(costs, 3, 100, shuffle=1))
    assert sorted(i for members in shuffled for i in members) == list(range(8))
    assert shuffled == list(batches_by_cost(costs, 3, 100, shuffle=1))


def test_lengths_are_pieces_with_symbols(task: Task) -> None:
    model = build_model(name(), task)
    assert isinstance(model, HuggingFace)
    examples = task.split("dev")
    batch = model.collate(examples)
    assert model.lengths(examples) == model.pieces(batch).real.sum(-1).tolist()


@pytest.mark.parametrize("head", [HEAD, POOL, "tune=true"])
def test_a_checkpoint_is_read_by_us_and_by_transformers(task: Task, tmp_path: Path, head: str) -> None:
    import transformers

    checkpoint, _ = train_model(task, name(head), 0, "epochs=1,metric=accuracy,lr=1e-3", tmp_path / "tuned")
    again = load_checkpoint(tmp_path / "tuned")
    examples = task.split("test")
    assert torch.equal(predict(checkpoint.classifier, examples), predict(again.classifier, examples))
    assert checkpoint.model.fingerprint() == again.model.fingerprint()
    by_name = ex.load(f"hf:{tmp_path / 'tuned'}")
    assert torch.equal(predict(by_name.classifier, examples), predict(again.classifier, examples))
    auto = transformers.AutoModelForSequenceClassification if head == "tune=true" else transformers.AutoModel
    theirs = auto.from_pretrained(tmp_path / "tuned").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "tuned")
    given = tokenizer(" ".join(examples[0].words), return_tensors="pt")
    assert isinstance(again.model, HuggingFace)
    read = again.model.read(again.model.collate(examples[:1]), None, None).output
    with torch.no_grad():
        assert torch.allclose(theirs(**given)[0], read[0], atol=1e-6)


def test_python_reads_the_texts_of_a_task_by_name_as_the_command_line_does(tmp_path: Path) -> None:
    file = tmp_path / "films.csv"
    lines = [f"{'A Charming' if i % 2 else 'A Dull'} Movie, no. {i},{i % 2}" for i in range(60)]
    file.write_text("\n".join(["text;label", *(";".join(line.rsplit(",", 1)) for line in lines)]))
    task = f"file:{file}"
    typed, _ = train_model(task, name("head=cls"), 0, "epochs=1", tmp_path / "typed")
    model = ex.train(name("head=cls"), task, training="epochs=1")
    assert (model.task, model.data_hash) == (typed.task, typed.data_hash)
    assert (model.tokenizer, model.lower) == ("whitespace", False)
    assert is_by_name(model, task)
    assert not is_by_name(model, f"{task}:lower=true")
    words = ex.score(model, task, ["random"])["word"].to_list()
    assert "Movie," in words
    assert ex.score(tmp_path / "typed", task, ["random"])["word"].to_list() == words


def test_a_damaged_head_is_not_taken(task: Task, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    train_model(task, name(), 0, "epochs=1,metric=accuracy", tmp_path / "tuned")
    head = load_file(tmp_path / "tuned" / "head.safetensors")
    save_file({key: tensor + 1 for key, tensor in head.items()}, tmp_path / "tuned" / "head.safetensors")
    with pytest.raises(ExegeteError, match="not those that were saved"):
        load_checkpoint(tmp_path / "tuned")


def test_a_classifier_is_taken_as_it_is(task: Task, tmp_path: Path) -> None:
    checkpoint, _ = train_model(task, f"hf:{bert_folder()}", 0, "", tmp_path / "same")
    own = predict(build_from_spec(f"hf:{bert_folder()}", task.labels), task.split("test"))
    assert torch.equal(predict(checkpoint.classifier, task.split("test")), own)
    assert checkpoint.metrics["history"] == []


def test_only_a_pretrained_model_has_its_recipe() -> None:
    assert by_default("classification", "hf:x")["optimiser"] == "adamw"
    assert by_default("classification", "bilstm") == {}
    assert by_default("pair", "hf:x")["metric"] == "accuracy"


def test_a_model_in_memory_is_wrapped_deposited_and_matched_to_a_task(task: Task, tmp_path: Path) -> None:
    base, tokenizer = bert(("yes", "no"))
    model = ex.wrap(base, tokenizer=tokenizer)
    assert isinstance(model, GivenModel)
    with torch.no_grad():
        base.classifier.weight.zero_()  # what happens to it afterwards doesn't count
    name_here = name_of_model(model, task, tmp_path)
    assert name_here.startswith(f"hf:{tmp_path}")
    rebuilt = build_from_spec(name_here, task.labels)
    fitted = fitting(model, task, tmp_path)
    examples = task.split("test")
    assert rebuilt.labels == task.labels == ("no", "yes")
    assert torch.equal(predict(rebuilt, examples), predict(fitted.classifier, examples))
    assert torch.equal(predict(rebuilt, examples)[:, [1, 0]], predict(model.classifier, examples))
    assert float(predict(rebuilt, examples).abs().max()) > 0
    again = ex.wrap(bert(("yes", "no"))[0], tokenizer=tokenizer, task=task)
    assert isinstance(again, GivenModel)
    assert again.model.labels == ("no", "yes")


def test_an_untrained_head_can_not_be_loaded() -> None:
    with pytest.raises(UsageError, match="has no trained classifier"):
        ex.load(name("head=mean"))


def test_it_is_explained_by_its_name(task: Task) -> None:
    found = ex.explain(f"hf:{bert_folder()}", "a charming movie", ["attention", "gradient_x_input", "leave_one_out"])
    assert found.words == ("a", "charming", "movie")
    assert len(found["leave_one_out"].scores) == 3
    model = build_from_spec(f"hf:{bert_folder()}")
    with torch.no_grad():
        trace = model.trace(model.collate([Example(0, (("a", "charming", "movie"),), 0)]))
    assert model.readout is not None
    read = trace.read(model.readout).mean(1)[0, 1:4]
    ours = torch.tensor(found["attention"].scores)
    assert torch.allclose(ours / ours.sum(), read / read.sum(), atol=1e-5)


def test_notes_say_how_attention_is_reached_and_how_texts_are_written(task: Task) -> None:
    model = build_from_spec(f"hf:{bert_folder()}", task.labels)
    assert len(model.notes(task)) == 1
    assert "reached by interface" in model.notes(task)[0]
    assert "tokenizer=whitespace,lower=false" in model.notes(replace(task, lower=True))[1]


def test_a_saved_folder_says_what_it_is(task: Task, tmp_path: Path) -> None:
    train_model(task, name(), 0, "epochs=1,metric=accuracy", tmp_path / "tuned")
    facts = json.loads((tmp_path / "tuned" / "checkpoint.json").read_text(encoding="utf8"))
    assert facts["access"] == "interface"
    assert facts["labels"] == ["no", "yes"]
    assert facts["words"] == []
