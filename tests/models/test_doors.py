"""Doors: what people have of transformers predicts what a pipeline predicts, or one sentence says why not."""

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import exegete as ex
from exegete.answers.explain import example_of
from exegete.base.errors import ExegeteError, UsageError
from exegete.models.huggingface.build import build_from_spec
from exegete.training.pretrained import GivenModel
from tests.models.tiny import SMALL, bert, byte_pieces, drawn, saved, word_pieces

TEXTS = ["a bad movie", "a charming plot of\n\nunbelievably terrific dull", "ok", "so dull, so bad!"]


def classifier(tokenizer: Any = None, **config: Any) -> tuple[Any, Any]:
    import transformers

    tokenizer = tokenizer or word_pieces()
    given = {"vocab_size": len(tokenizer), "pad_token_id": 0} | SMALL | config
    return drawn(transformers.BertForSequenceClassification(transformers.BertConfig(**given))), tokenizer


def piped(model: Any, tokenizer: Any, texts: list[str] = TEXTS) -> list[dict[str, float]]:
    import transformers

    pipe = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer, top_k=None)
    return [{each["label"]: each["score"] for each in scored} for scored in pipe(texts)]  # type: ignore[index,misc]


def ours(given: Any, texts: list[str] = TEXTS) -> Tensor:
    assert isinstance(given, GivenModel)
    with torch.no_grad():
        return torch.cat([given.model.logits(given.model.collate([example_of(given, (t,))])) for t in texts]).softmax(
            -1
        )


def test_two_labels_that_nobody_named_are_taken_from_a_folder_and_from_memory(tmp_path: Path) -> None:
    parts = classifier()
    folder = saved(*parts, tmp_path / "default")
    assert "id2label" not in (folder / "config.json").read_text(encoding="utf8")  # what used to be read
    loaded, wrapped = ex.load(f"hf:{folder}"), ex.wrap(parts[0], tokenizer=parts[1])
    assert loaded.model.labels == ("LABEL_0", "LABEL_1")
    wanted = torch.tensor([[each["LABEL_0"], each["LABEL_1"]] for each in piped(*parts)])
    assert torch.allclose(ours(loaded), wanted, atol=1e-6)
    assert torch.allclose(ours(wrapped), wanted, atol=1e-6)
    assert build_from_spec(f"hf:{folder}", ("0", "1")).labels == ("0", "1")
    assert build_from_spec(f"hf:{folder}:labels=bad/good", ("bad", "good")).labels == ("bad", "good")


@pytest.mark.parametrize(("named", "classes"), [(None, ("0", "1")), ("toxic", ("not toxic", "toxic"))])
def test_one_logit_is_two_classes_by_its_sigmoid(named: str | None, classes: tuple[str, ...], tmp_path: Path) -> None:
    parts = classifier(num_labels=1, **({"id2label": {0: named}} if named else {}))
    for given in (ex.wrap(parts[0], tokenizer=parts[1]), ex.load(f"hf:{saved(*parts, tmp_path / 'one')}")):
        assert isinstance(given, GivenModel)
        assert given.model.labels == classes
        wanted = torch.tensor([each[named or "LABEL_0"] for each in piped(*parts)])
        assert torch.allclose(ours(given)[:, 1], wanted, atol=1e-6)
        assert given.relabelled(("0", "1")).model.labels == ("0", "1")  # a task of zeros and ones needs no more words


def test_of_several_labels_one_is_asked_about(tmp_path: Path) -> None:
    config = {"problem_type": "multi_label_classification", "id2label": {0: "toxic", 1: "insult", 2: "sci/tech"}}
    parts = classifier(**config)
    folder = saved(*parts, tmp_path / "several")
    with pytest.raises(UsageError, match=r"several labels at once \(toxic, insult, sci/tech\).* label=NAME"):
        ex.wrap(parts[0], tokenizer=parts[1])
    with pytest.raises(UsageError, match=r"several labels at once"):
        ex.load(f"hf:{folder}")
    with pytest.raises(UsageError, match="did you mean 'insult'"):
        ex.load(f"hf:{folder}:label=insults")
    for label in ("insult", "sci/tech"):
        wanted = torch.tensor([each[label] for each in piped(*parts)])
        for given in (ex.wrap(parts[0], tokenizer=parts[1], label=label), ex.load(f"hf:{folder}:label={label}")):
            assert isinstance(given, GivenModel)
            assert given.model.labels == (f"not {label}", label)
            assert torch.allclose(ours(given)[:, 1], wanted, atol=1e-6)


def test_a_number_is_refused_and_a_label_of_a_single_class_too() -> None:
    with pytest.raises(UsageError, match="predicts a number, not a class"):
        ex.wrap(*classifier(num_labels=1, problem_type="regression")[:1], tokenizer=word_pieces())
    with pytest.raises(UsageError, match="gives a text one class: leave label=x out"):
        ex.wrap(classifier()[0], tokenizer=word_pieces(), label="x")


def test_names_of_classes_can_be_given() -> None:
    base, tokenizer = classifier()
    given = ex.wrap(base, tokenizer=tokenizer, labels=["bad", "good"])
    assert isinstance(given, GivenModel)
    assert given.model.labels == ("bad", "good")
    assert base.config.id2label == {0: "LABEL_0", 1: "LABEL_1"}  # theirs is as it was
    with pytest.raises(UsageError, match="has 2 classes: give labels= as many names"):
        ex.wrap(base, tokenizer=tokenizer, labels=["bad", "good", "ugly"])


def test_a_pipeline_brings_its_tokenizer_and_whether_it_cuts() -> None:
    import transformers

    parts = bert()
    pipe = transformers.pipeline("text-classification", model=parts[0], tokenizer=parts[1], truncation=True)
    given = ex.wrap(pipe)
    assert isinstance(given, GivenModel)
    assert given.model.settings.truncate  # type: ignore[attr-defined]
    long = " ".join(["bad"] * 100)
    assert ours(given, [long])[0].max() == pytest.approx(pipe([long])[0]["score"], abs=1e-6)


class Named(nn.Module):
    """Something that is no model of transformers."""


def test_a_pipeline_that_gives_no_class_of_its_model_is_refused() -> None:
    import transformers

    base, tokenizer = bert(("contradiction", "entailment"))
    base.config.label2id = {"contradiction": 0, "entailment": 1}
    pipe = transformers.pipeline("zero-shot-classification", model=base, tokenizer=tokenizer)
    with pytest.raises(UsageError, match=r"a ZeroShotClassificationPipeline does something else .*wrap\(pipeline"):
        ex.wrap(pipe)


def test_what_a_model_is_decides_and_not_its_name() -> None:
    import transformers

    class Sentiment(transformers.BertForSequenceClassification):
        """Ends in none of transformers' names."""

    base, tokenizer = bert()
    same = Sentiment(base.config)
    same.load_state_dict(base.state_dict())
    assert torch.allclose(ours(ex.wrap(same, tokenizer=tokenizer)), ours(ex.wrap(base, tokenizer=tokenizer)))
    with pytest.raises(UsageError, match="Named is no model of transformers"):
        ex.wrap(Named(), tokenizer=tokenizer)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("BertForTokenClassification", "gives every word a class"),
        ("BertForQuestionAnswering", "points at a span"),
        ("BertForMaskedLM", "fills in masked words"),
    ],
)
def test_other_heads_are_told_what_they_do(kind: str, said: str, tmp_path: Path) -> None:
    import transformers

    tokenizer = word_pieces()
    base = getattr(transformers, kind)(transformers.BertConfig(vocab_size=len(tokenizer), pad_token_id=0, **SMALL))
    with pytest.raises(UsageError, match=said):
        ex.wrap(base, tokenizer=tokenizer)
    with pytest.raises(UsageError, match=f"{said}.*head=cls"):
        ex.load(f"hf:{saved(base, tokenizer, tmp_path / 'other')}:head=own")


def gpt2(tokenizer: Any, **config: Any) -> Any:
    import transformers

    given = {"vocab_size": len(tokenizer), "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64} | config
    return drawn(transformers.GPT2ForSequenceClassification(transformers.GPT2Config(**given)))


@pytest.mark.parametrize("pad", [None, 0, 7])
@pytest.mark.parametrize("named", [False, True])
def test_padding_may_be_unknown_to_the_model_or_another_to_the_tokenizer(pad: int | None, named: bool) -> None:
    tokenizer = byte_pieces()
    if not named:
        tokenizer.pad_token = None
    base = gpt2(tokenizer, pad_token_id=pad)
    given = ex.wrap(base, tokenizer=tokenizer)
    assert isinstance(given, GivenModel)
    alone = []
    for text in TEXTS:
        with torch.no_grad():
            alone.append(base(**tokenizer(text, return_tensors="pt")).logits)
        together = given.model.collate([example_of(given, (t,)) for t in TEXTS])
    with torch.no_grad():
        assert torch.allclose(given.model.logits(together), torch.cat(alone), atol=1e-5)


def test_a_language_model_whose_first_piece_sees_nothing_is_told_to_take_the_mean(tmp_path: Path) -> None:
    import transformers

    tokenizer = byte_pieces()
    config = transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=64)
    folder = saved(drawn(transformers.GPT2LMHeadModel(config)), tokenizer, tmp_path / "gpt2")
    with pytest.raises(UsageError, match=r"look back only, and its first piece sees nothing .* use head=mean"):
        build_from_spec(f"hf:{folder}:head=cls", ("no", "yes"))
    assert build_from_spec(f"hf:{folder}").as_it_is  # it is asked for the next piece
    assert build_from_spec(f"hf:{folder}:head=mean", ("no", "yes")).query == "every"


def test_a_tokenizer_of_another_model_is_refused() -> None:
    base, _ = bert()
    with pytest.raises(UsageError, match=r"the tokenizer has \d+ pieces and hf:BertFor.* another model's"):
        ex.wrap(base, tokenizer=byte_pieces())


def test_quantised_layers_are_refused() -> None:
    base, tokenizer = bert()
    with pytest.MonkeyPatch.context() as patch:
        kind = type("Linear", (nn.Linear,), {"__module__": "torch.ao.nn.quantized.dynamic.modules.linear"})
        patch.setattr(base, "classifier", kind(SMALL["hidden_size"], 2))
        with pytest.raises(UsageError, match="quantised, and gradients don't pass them"):
            ex.wrap(base, tokenizer=tokenizer)


def test_an_adapter_is_merged_and_its_folder_told_how(tmp_path: Path) -> None:
    base, tokenizer = bert()
    merged = copy.deepcopy(base)

    class Adapter(nn.Module):
        """What PEFT calls a model with an adapter."""

        def merge_and_unload(self) -> Any:
            return merged

    assert torch.allclose(ours(ex.wrap(Adapter(), tokenizer=tokenizer)), ours(ex.wrap(base, tokenizer=tokenizer)))
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "bert-base"}', encoding="utf8")
    with pytest.raises(UsageError, match=r"adapter \(PEFT\), .* without bert-base: .*merge_and_unload\(\)"):
        ex.load(f"hf:{tmp_path}")


def test_a_model_that_gives_no_numbers_is_told_so() -> None:
    base, tokenizer = bert()
    with torch.no_grad():
        base.classifier.weight[0, 0] = torch.nan
    with pytest.raises(ExegeteError, match=r"computes NaN or infinite numbers .* take an earlier checkpoint"):
        ex.wrap(base, tokenizer=tokenizer)


@pytest.mark.slow
def test_a_compiled_model_is_read_as_it_was() -> None:
    def compiled(*_: Any) -> Any:
        raise AssertionError

    base, tokenizer = bert()
    given = ex.wrap(torch.compile(base, backend=compiled), tokenizer=tokenizer)
    assert torch.equal(ours(given), ours(ex.wrap(base, tokenizer=tokenizer)))


def test_places_that_no_text_has_are_refused() -> None:
    import transformers

    class Prompted(transformers.BertForSequenceClassification):
        """Four embeddings before every text, as prompt tuning has them."""

        def forward(
            self, input_ids: Any = None, attention_mask: Any = None, token_type_ids: Any = None, **more: Any
        ) -> Any:
            rows = self.get_input_embeddings()(input_ids)
            prompt, seen = rows.new_ones(len(rows), 4, rows.shape[-1]), attention_mask.new_ones(len(rows), 4)
            both = {
                "inputs_embeds": torch.cat([prompt, rows], 1),
                "attention_mask": torch.cat([seen, attention_mask], 1),
            }
            return super().forward(**both)

    base, tokenizer = bert()
    with pytest.raises(UsageError, match=r"attends to places that no text has, .* merged into the weights"):
        ex.wrap(Prompted(base.config), tokenizer=tokenizer)


def test_a_model_that_hides_its_embeddings_is_told_what_to_add() -> None:
    import transformers

    class Hidden(transformers.BertForSequenceClassification):
        def get_input_embeddings(self) -> Any:
            raise NotImplementedError

    with pytest.raises(UsageError, match=r"let its get_input_embeddings\(\) return"):
        ex.wrap(Hidden(bert()[0].config), tokenizer=word_pieces())


def test_a_bare_model_is_told_what_it_needs() -> None:
    base, _ = bert()
    task = ex.task(texts=[f"{text} {number}" for number in range(30) for text in TEXTS], labels=["no", "yes"] * 60)
    with pytest.raises(UsageError, match=r"needs its tokenizer: give exegete.wrap\(model, tokenizer=tokenizer\)"):
        ex.audit(base, task)
    with pytest.raises(ExegeteError, match="labels, label, truncate and prompt are for"):
        ex.wrap(SimpleNamespace(), truncate=True)
