"""Causal language models: next pieces as transformers computes them, answers of several pieces, and known truths."""

from typing import Any

import pytest
import torch
from torch import Tensor

import exegete as ex
from exegete.answers.explain import example_of
from exegete.base.errors import UsageError
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Target
from exegete.models.capabilities import Continuing
from exegete.models.huggingface.build import build_from_spec, wrap_classifier
from exegete.models.huggingface.causal import OTHER, Answering, LanguageModel, log_sum_exp
from exegete.models.huggingface.sites import reading
from exegete.tasks.example import Example
from exegete.training.pretrained import GivenModel
from tests.models.architectures import MADE
from tests.models.causal_models import CAUSAL, base_of, bytes_without_symbols, language_model
from tests.models.hand_set_causal import copying
from tests.models.tiny import bert, saved

TEXTS = ("it is a bad  film", "ok", "go it\n\nok, was bad ")
CLOSE = 1e-5


def given(model: LanguageModel) -> GivenModel:
    return GivenModel(model, "", "", 0, {}, {})


def example(text: str) -> Example:
    return example_of(given(language_model()), (text,))


def by_transformers(model: Any, text: str) -> Tensor:
    ids = model.tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        found: Tensor = model.base(input_ids=ids).logits[0, -1]
    return found


@pytest.mark.parametrize("model_type", CAUSAL)
def test_logits_are_those_of_transformers_alone_and_beside_longer_texts(model_type: str) -> None:
    model = language_model(model_type)
    with torch.no_grad():
        together = model.logits(model.collate([example(text) for text in TEXTS]))
        for row, text in enumerate(TEXTS):
            alone = model.logits(model.collate([example(text)]))[0]
            wanted = by_transformers(model, text)
            assert torch.allclose(alone, wanted, atol=CLOSE)
            assert torch.allclose(together[row], wanted, atol=CLOSE)


def test_thirteen_architectures_are_asked() -> None:
    assert len(CAUSAL) == 13
    assert {"gpt_oss", "gemma2", "mistral", "qwen3", "bloom"} <= set(CAUSAL)  # sinks, caps, windows, shared keys, ALiBi


@pytest.mark.parametrize("model_type", CAUSAL)
def test_attention_is_that_of_eager(model_type: str) -> None:
    model = language_model(model_type)
    assert len(model.sites) == model.base.config.num_hidden_layers == 2
    batch = model.collate([example(TEXTS[0])])
    pieces = model.pieces(batch)
    with torch.no_grad(), reading(model.base, model.access) as run:
        model.call(pieces, batch)
    before = model.base.config._attn_implementation
    model.base.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            eager = model.base(**model.inputs(pieces, batch), output_attentions=True).attentions
    finally:
        model.base.set_attn_implementation(before)
    for site, wanted in zip(model.sites, eager, strict=True):
        assert torch.allclose(run.weights[site], wanted[..., : run.weights[site].shape[-1]], atol=1e-6)
    assert model.proof.gated == (model_type == "gpt_oss")  # sinks: rows sum to less than 1
    weights = model.trace(batch).read(model.readout).detach()
    assert float(weights.sum(-1).max()) <= 1 + 1e-6


def test_the_readout_is_the_row_of_the_last_piece() -> None:
    model = language_model()
    batch = model.collate([example("it zzz")])  # a last word of several pieces
    pieces = model.pieces(batch)
    with torch.no_grad(), reading(model.base, model.access) as run:
        model.call(pieces, batch)
    last = run.weights[model.sites[-1]][0, :, -1]  # [head, piece]
    folded = last @ pieces.member[0]
    assert torch.allclose(model.trace(batch).read(model.readout)[0], folded, atol=1e-6)


def test_a_start_symbol_is_written_and_an_end_symbol_is_not() -> None:
    tokenizer = bytes_without_symbols(start=True)
    model = wrap_classifier(base_of("llama"), tokenizer)
    assert isinstance(model, LanguageModel)
    assert model.vocabulary.ids(example("ok bad")) == tokenizer("ok bad")["input_ids"]
    assert model.vocabulary.wrappers.end == ()


def test_classes_are_pieces_as_they_are_written() -> None:
    model = language_model()
    assert len(set(model.labels)) == len(model.labels) == model.base.config.vocab_size
    assert " bad" in model.labels
    assert "\n" in model.labels
    assert isinstance(model, Continuing)


def test_an_answer_of_several_pieces_is_the_sum_of_its_log_probabilities() -> None:
    model, text = language_model(), example(TEXTS[0])
    answers = [model.pieces_after(text, each) for each in (" not bad", " ok")]
    assert [len(answer) for answer in answers] == [5, 1]
    view = model.answering(answers)
    wanted = []
    for answer in answers:
        total, ids = 0.0, model.vocabulary.ids(text)
        for piece in answer:
            with torch.no_grad():
                total += float(model.base(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)[piece])
            ids = [*ids, piece]
        wanted.append(total)
    with torch.no_grad():
        beside = view.logits(view.collate([example("it is so very long, the film"), text]))[1]
        assert view.logits(view.collate([text]))[0].tolist() == pytest.approx(wanted, abs=1e-4)
    assert beside.tolist() == pytest.approx(wanted, abs=1e-4)
    assert view.labels == (" not bad", " ok")


def test_one_answer_alone_is_set_against_any_other() -> None:
    model, text = language_model(), example(TEXTS[0])
    view = model.answering([model.pieces_after(text, " not")])
    with torch.no_grad():
        probabilities = view.logits(view.collate([text]))[0].double().exp()
    assert view.labels == (" not", OTHER)
    assert float(probabilities.sum()) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("name", ["gradient_x_input", "leave_one_out:of=logit", "occlusion", "attention", "lrp"])
def test_methods_explain_answers_and_what_they_say_of_a_contrast_is_the_difference(name: str) -> None:
    model, text = language_model(), example(TEXTS[0])
    views: list[Any] = [model, model.answering([model.pieces_after(text, each) for each in (" not bad", " ok")])]
    for view in views:
        batch = view.collate([text])
        one, other = (view.labels.index(label) for label in (view.labels[-1], view.labels[0]))
        method = IMPORTANCES.make(name)
        both = [method(view, batch, Target(torch.tensor([label]))).values for label in (one, other)]
        against = method(view, batch, Target(torch.tensor([one]), contrast=torch.tensor([other]))).values
        assert not against[batch.words].isnan().any()
        if name in ("gradient_x_input", "occlusion", "lrp"):
            assert torch.allclose(against[batch.words], (both[0] - both[1])[batch.words], atol=1e-4)


@pytest.mark.parametrize("model_type", ["llama", "gpt2", "qwen3", "gemma2"])
def test_relevance_is_conserved(model_type: str) -> None:
    model = language_model(model_type)
    found = IMPORTANCES.make("lrp")(model, model.collate([example(text) for text in TEXTS]))
    assert found.error is not None
    assert float(found.error.max()) < 1e-4


def test_leave_one_out_is_a_plain_pass_of_the_shortened_text() -> None:
    model, words = language_model(), ["it", "is", "bad", "ok"]
    batch = model.collate([Example(0, (tuple(words),), 0)])
    whole = by_transformers(model, " ".join(words))
    label = int(whole.argmax())
    found = IMPORTANCES.make("leave_one_out:of=logit")(model, batch, Target(torch.tensor([label]), of="logit"))
    lost = [whole[label] - by_transformers(model, " ".join(words[:i] + words[i + 1 :]))[label] for i in range(4)]
    assert found.values[batch.words].tolist() == pytest.approx([float(each) for each in lost], abs=1e-4)


def test_the_weights_of_a_sum_of_exponentials_are_constants_and_nothing_changes() -> None:
    z = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.allclose(log_sum_exp(z), z.logsumexp(-1))
    ours, theirs = (torch.autograd.grad(f.sum(), z)[0] for f in (log_sum_exp(z), z.logsumexp(-1)))
    assert torch.allclose(ours, theirs)


@pytest.mark.parametrize(("text", "place", "said"), [("the film was good and so", 3, "yes"), ("it was bad", 2, "no")])
def test_a_model_that_is_set_by_hand_is_explained_as_it_was_made(text: str, place: int, said: str) -> None:
    model = ex.wrap(copying()[0], tokenizer=copying()[1])
    found = ex.explain(model, text, ["attention", "lrp", "occlusion", "leave_one_out:of=logit"])
    assert found.next_word is not None
    assert found.next_word.strip() == said
    for method in found.methods:
        scores = torch.tensor(method.scores)
        assert int(scores.abs().argmax()) == place, method.name
    attention = torch.tensor(found["attention"].scores)
    assert float(attention[place]) > 0.99
    relevance = torch.tensor(found["lrp"].scores)
    assert float(relevance[place] / relevance.sum()) > 0.99


def test_other_weights_give_what_was_set_by_hand() -> None:
    from exegete.models.openings import opened

    model: Any = wrap_classifier(*copying())
    batch = model.collate([Example(0, (("good", "bad"),), 0)])
    site = opened(model, batch)
    yes, no = (next(i for i, label in enumerate(model.labels) if label.strip() == word) for word in ("yes", "no"))
    for weights, sign in (([1.0, 0.0], 1), ([0.0, 1.0], -1)):
        width = site.weights.shape[-1]
        own = torch.zeros(1, 1, 1, width, dtype=torch.float64)
        own[0, 0, 0, batch.words[0].nonzero()[:, 0]] = torch.tensor(weights, dtype=torch.float64)
        logits = site.logits(own)[0, 0].detach()
        assert float(logits[yes] - logits[no]) * sign > 1


def test_what_comes_next_is_explained_alone_and_against_another() -> None:
    model = given(language_model())
    found = ex.explain(model, "it is", ["attention", "lrp"], target=" bad", contrast=" ok")
    assert (found.target, found.contrast) == (" bad", " ok")
    assert len(found.probabilities) >= 10
    assert "Explained: the logit of “ bad” minus that of “ ok”" in found.heatmap().title
    longer = ex.explain(model, "it is", ["attention", "lrp"], target=" not bad", contrast=" ok")
    assert set(longer.probabilities) == {" not bad", " ok"}
    assert "p of these two" in longer.heatmap().title
    alone = ex.explain(model, "it is", ["lrp"], target=" not bad")
    assert set(alone.probabilities) == {" not bad", OTHER}
    plain = ex.explain(model, "it is", ["lrp"])
    assert plain.to_json()["next_word"].startswith(plain.prediction)
    assert f"Next word: “{plain.next_word}”".replace("\n", "\\n") in plain.heatmap().title


def test_bad_input_is_one_sentence() -> None:
    model = given(language_model())
    with pytest.raises(UsageError, match="the continuation is empty"):
        ex.explain(model, "it is", ["lrp"], target="")
    with pytest.raises(UsageError, match="reads 256 pieces at most"):
        ex.explain(model, "zz " * 200, ["lrp"])
    with pytest.raises(UsageError, match="is cut together with the end of the text"):
        ex.explain(model, "go i", ["lrp"], target="t")
    with pytest.raises(UsageError, match="predicts the next word: leave label and truncate out"):
        ex.wrap(base_of("llama"), tokenizer=bytes_without_symbols(), truncate=True)
    view = language_model().answering([(5, 6)])
    batch = view.collate([example("ok")])
    with pytest.raises(UsageError, match="answer of several pieces is read at several places"):
        view.begun(batch, view.sites[-1], lambda site: site.weights)


def test_padding_on_the_left_is_none_of_ours() -> None:
    tokenizer = bytes_without_symbols(padding=True)
    tokenizer.padding_side = "left"
    model: Any = wrap_classifier(base_of("gpt2"), tokenizer)
    with torch.no_grad():
        both = model.logits(model.collate([example(TEXTS[0]), example(TEXTS[1])]))
    for row, text in zip(both, TEXTS, strict=False):
        assert torch.allclose(row, by_transformers(model, text), atol=CLOSE)


def test_a_model_from_its_folder_is_the_one_in_memory(tmp_path: Any) -> None:
    folder = saved(base_of("llama"), bytes_without_symbols(), tmp_path / "lm")
    loaded, held = build_from_spec(f"hf:{folder}"), language_model()
    with torch.no_grad():
        both = [each.logits(each.collate([example(TEXTS[0])])) for each in (loaded, held)]
    assert torch.equal(*both)
    with pytest.raises(UsageError, match="has no language-model head, which a prompt needs"):
        build_from_spec(f"hf:{saved(*bert(), tmp_path / 'bert')}:prompt=It is {{text}}")
    with pytest.raises(UsageError, match="asked as it is, and not trained here"):
        build_from_spec(f"hf:{folder}:head=lm,frozen=1")


def test_every_causal_architecture_of_the_table_has_a_language_model() -> None:
    import transformers

    assert all(hasattr(transformers, MADE[name][1]) for name in CAUSAL)
    assert isinstance(language_model().answering([(5,)]), Answering)


def test_what_is_on_no_word_of_the_text_is_said() -> None:
    start: Any = wrap_classifier(base_of("llama"), bytes_without_symbols(start=True))
    found = ex.explain(given(start), "it is", ["attention"])
    shown = sum(found["attention"].scores)
    (note,) = (note for note in found.notes if "no word of the text" in note)
    assert f"attention gives {1 - shown:.0%} of its weight" in note
    plain = ex.explain(given(language_model()), "it is", ["attention"])
    assert not any("no word of the text" in note for note in plain.notes)
