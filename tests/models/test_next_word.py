"""Next word: a translator's last step as a classification; importances, interventions and experiments ask it."""

import itertools
from functools import cache

import polars as pl
import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.agreement.experiment import Agreement
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Subject, unsuited
from exegete.experiments.common.pooling import open_pooled
from exegete.importance.catalogue import IMPORTANCES
from exegete.interventions.adversarial import Adversarial
from exegete.interventions.contract import bound
from exegete.interventions.permute import Permute, permuted
from exegete.models.capabilities import Pooling
from exegete.models.openings import opened, unopened, unpooled
from exegete.models.ours.module import hash_tensors
from exegete.models.ours.next_word import next_word
from exegete.models.ours.translator import Translator
from exegete.tasks.batching import batches_of_one_length
from exegete.tasks.example import Example, Task
from exegete.tasks.vocabulary import END, SPECIAL
from exegete.training.evaluation import evaluate, predict
from tests.models.small_translation import BAHDANAU, LUONG, sentences, small_translator
from tests.subjects import cell, subject_of

SENTENCES = sentences(12, seed=4)
TRANSFORMER = "translator:architecture=transformer,hidden=8,heads=2,layers=2"
SPECS = (BAHDANAU, LUONG, TRANSFORMER)


@cache
def translator(spec: str = BAHDANAU) -> Translator:
    return small_translator(spec, SENTENCES)


def asked(step: int = 1) -> tuple[Example, ...]:
    """The word after `step` words of every target that has so many; the end symbol after all of them."""
    vocabulary = translator().vocabulary
    kept = [e for e in SENTENCES if len(e.texts[1]) >= step]
    return tuple(
        Example(e.id, (e.texts[0], e.texts[1][:step]), vocabulary.rows((*e.texts[1], "</s>"))[step]) for e in kept
    )


EXAMPLES = (*asked(0)[:4], *asked(2)[4:])


@pytest.mark.parametrize("spec", SPECS)
def test_logits_are_those_of_the_last_step(spec: str) -> None:
    model = next_word(translator(spec))
    found = predict(model, EXAMPLES)
    assert model.labels == (*SPECIAL, *model.vocabulary.words)
    for example, logits in zip(EXAMPLES, found, strict=True):
        whole = next(e for e in SENTENCES if e.id == example.id)  # with what comes after the prefix
        trace = translator(spec).trace(model.collate([whole]))
        assert torch.allclose(logits, trace.logits[0, len(example.texts[1])], atol=1e-5)


@pytest.mark.parametrize("spec", SPECS)
def test_sites_have_one_query_but_those_of_an_encoder(spec: str) -> None:
    model = next_word(translator(spec))
    batch = model.collate(EXAMPLES)
    trace = model.trace(batch)
    assert model.sites == translator(spec).sites
    assert set(trace.attention) == set(model.sites)
    for site, weights in trace.attention.items():
        assert (weights.shape[2] == 1) == (not site.startswith("encoder."))
        assert torch.allclose(weights.sum(-1)[:, :, 0], torch.ones(len(EXAMPLES), weights.shape[1]), atol=1e-5)


@pytest.mark.parametrize("spec", SPECS)
def test_it_is_the_translator_and_no_copy(spec: str) -> None:
    own = small_translator(spec, SENTENCES)
    model = next_word(own)
    assert hash_tensors(model.state_dict()) == hash_tensors(own.state_dict())
    assert [id(p) for p in model.parameters()] == [id(p) for p in own.parameters()]
    assert [id(p) for p in model.attention_parameters()] == [id(p) for p in own.attention_parameters()]
    before = predict(model, EXAMPLES)
    with torch.no_grad():
        own.embedding.weight.mul_(2)
    assert not torch.allclose(before, predict(model, EXAMPLES))
    model.load_state_dict(small_translator(spec, SENTENCES).state_dict())
    assert torch.allclose(before, predict(next_word(own), EXAMPLES))


def test_both_are_in_one_mode() -> None:
    own = small_translator(BAHDANAU, SENTENCES)
    model = next_word(own)
    assert not model.training
    model.train()
    assert all(module.training for module in own.modules())
    model.eval()
    assert not any(module.training for module in own.modules())


def test_accuracy_is_the_share_of_right_words() -> None:
    model = next_word(translator())
    answers = predict(model, EXAMPLES).argmax(-1).tolist()
    right = [a == e.label for a, e in zip(answers, EXAMPLES, strict=True)]
    assert evaluate(model, EXAMPLES)["accuracy"] == pytest.approx(sum(right) / len(right))


# Importances: every one scores the source's words, or says why not.


def test_leave_one_out_deletes_from_the_source() -> None:
    """Slowly: the logit of the predicted word minus that without each word of the source."""
    model = next_word(translator())
    example = EXAMPLES[0]
    batch = model.collate([example])
    scores = IMPORTANCES.make("leave_one_out:of=logit")(model, batch)
    with torch.no_grad():
        whole = model.trace(batch).logits[0]
        for t in range(len(example)):
            source = example.texts[0][:t] + example.texts[0][t + 1 :]
            without = model.trace(model.collate([Example(0, (source, example.texts[1]), 0)])).logits[0]
            label = int(whole.argmax())
            assert float(scores.values[0, 1 + t]) == pytest.approx(float(whole[label] - without[label]), abs=1e-5)


# Pooling: weights of the last step rewritten after encoding.


@pytest.mark.parametrize("spec", [BAHDANAU, LUONG])
def test_pooled_texts_are_decoded_as_traced(spec: str) -> None:
    model = next_word(translator(spec))
    found = torch.empty(len(EXAMPLES), len(model.labels), dtype=torch.float64)
    for pool in open_pooled(model, EXAMPLES):
        found[pool.members] = pool.logits
    assert torch.allclose(found.float(), predict(model, EXAMPLES), atol=1e-5)
    assert isinstance(model, Pooling)
    assert unopened(model) is None


def test_pools_are_small_where_classes_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    model = next_word(translator())
    monkeypatch.setattr("exegete.experiments.common.pooling.NUMBERS", 100 * len(model.labels) * 2)
    pools = list(open_pooled(model, EXAMPLES))
    assert max(len(pool.members) for pool in pools) == 2
    assert sorted(itertools.chain(*(pool.members for pool in pools))) == list(range(len(EXAMPLES)))
    plain = list(batches_of_one_length(EXAMPLES, 512, 32_768))
    assert len(pools) > len(plain)


def test_a_translator_that_does_not_pool_is_refused_with_its_own_sentence() -> None:
    model = next_word(translator(TRANSFORMER))
    sentence = unpooled(model)
    assert sentence is not None
    assert unopened(model) == sentence
    assert not isinstance(model, Pooling)
    with pytest.raises(UsageError, match="many layers"):
        opened(model, model.collate(EXAMPLES))
    with pytest.raises(UsageError, match="many layers"):
        next(iter(open_pooled(model, EXAMPLES)))
    for name in REWRITING:
        assert unsuited(EXPERIMENTS.make(name), TASK, model) == sentence


def test_adversarial_weights_are_not_for_every_step() -> None:
    with pytest.raises(UsageError, match="every step"):
        bound(Adversarial(), next_word(translator()))


# Experiments.

REWRITING = ("permutation", "single_weight", "decision_flips", "importance_sets", "adversary_search")
ASKED = {
    "permutation": "permutation:draws=7",
    "importance_sets": "importance_sets:orders=2",
    "adversary_search": "adversary_search:steps=3,references=false",
}
TASK = Task("numbers", (*SPECIAL, *translator().vocabulary.words), {"test": EXAMPLES}, "made up", kind="pair")


def subject(spec: str, scores: dict[str, Tensor] | None = None) -> Subject:
    model = next_word(translator(spec))
    return subject_of(model, TASK, scores=scores or {}, signed=dict.fromkeys(scores or {}, False))


@pytest.mark.parametrize("name", REWRITING)
@pytest.mark.parametrize("spec", [BAHDANAU, LUONG])
def test_experiments_that_rewrite_weights(name: str, spec: str) -> None:
    experiment = EXPERIMENTS.make(ASKED.get(name, name))
    rows = experiment.rows(subject(spec))
    assert set(rows["example"]) == {e.id for e in EXAMPLES}
    assert experiment.summary(cell(rows)).height > 0


def test_agreement_of_two_importances() -> None:
    model = next_word(translator())
    width = max(map(len, EXAMPLES))
    scores = {}
    for name in ("attention", "gradient", "leave_one_out", "random"):
        found = torch.full((len(EXAMPLES), width), torch.nan, dtype=torch.float64)
        for i, example in enumerate(EXAMPLES):
            batch = model.collate([example])
            found[i, : len(example)] = IMPORTANCES.make(name)(model, batch).values[batch.words].double()
        scores[name] = found
    rows = Agreement(ks=("3",), topk=("fagin",), draws=1).rows(subject(BAHDANAU, scores))
    assert {"attention", "gradient", "leave_one_out"} <= {*rows["first"], *rows["second"]}
    assert rows["value"].drop_nulls().len() > 0


@pytest.mark.parametrize("spec", [BAHDANAU, LUONG])
@torch.no_grad()
def test_permutation_is_that_of_the_last_step(spec: str) -> None:
    """TVD of one permutation again, text by text."""
    model = next_word(translator(spec))
    assert isinstance(model, Pooling)
    rows = EXPERIMENTS.make("permutation:draws=1").rows(subject(spec))
    for pool in open_pooled(model, EXAMPLES):
        for place, member in enumerate(pool.members):
            example = EXAMPLES[member]
            batch = model.collate([example])
            own = model.trace(batch).logits.double().softmax(-1)[0]
            encoded = model.encode(batch).to(torch.float64)
            weights = permuted(pool.key_weights, pool.mask, pool.ids, 0, 1)[place]  # [1, key]
            other = model.decode(encoded, weights[None, :, : encoded.mask.shape[1]])[0, 0].softmax(-1)
            said = rows.filter(pl.col("example") == example.id)["median_tvd"].to_list()
            expected = None if len(example) == 1 else float((own - other).abs().sum() / 2)
            assert said == [pytest.approx(expected, abs=1e-5)] if expected is not None else said == [None]


@pytest.mark.parametrize("spec", SPECS)
def test_an_intervention_acts_at_every_step(spec: str) -> None:
    model = next_word(translator(spec))
    batch = model.collate(EXAMPLES)
    found = model.trace(batch, intervene=Permute(seed=1)).logits
    whole = translator(spec).trace(batch, intervene=Permute(seed=1)).logits
    for i, example in enumerate(EXAMPLES):
        assert torch.allclose(found[i], whole[i, len(example.texts[1])], atol=1e-6)
    assert not torch.allclose(found, model.trace(batch).logits, atol=1e-3)


def test_the_end_symbol_is_a_class() -> None:
    assert any(e.label == END for e in asked(2))
