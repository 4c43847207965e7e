"""The Transformer translator: against the paper's formulas in loops, step by step, alone, in batches and padded."""

import random
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.interventions.permute import Permute
from exegete.interventions.random import Random
from exegete.interventions.uniform import Uniform
from exegete.models.build import build_model, make_model
from exegete.models.contract import Intervention, Site, Trace
from exegete.models.ours.transformer_translator import TransformerTranslator
from exegete.models.ours.translator import gold, last_step, read_by_decoder
from exegete.models.settings import MODELS
from exegete.tasks.batching import Batch, collate
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import START
from exegete.training.evaluation import evaluate
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.models.slow_transformer import slow_logits
from tests.small import vocabulary

SMALL = "translator:architecture=transformer,hidden=8,heads=2,inner=12,layers=2,scale=0.7"
SPECS = (
    SMALL,
    f"{SMALL},norm=post,tied=false",
    f"{SMALL},projection=entmax,learned=true",
    f"{SMALL},projection=sparsemax",
)


def sentences(n: int, seed: int = 0, longest: int = 6) -> tuple[Example, ...]:
    """Letters, and the same backwards, in capitals."""
    draw = random.Random(seed)
    found = []
    for i in range(n):
        words = tuple(draw.choice("abcde") for _ in range(draw.randint(1, longest)))
        found.append(Example(i, (words, tuple(word.upper() for word in reversed(words))), 0))
    return tuple(found)


TEXTS = sentences(5)


def translator(spec: str = SMALL, examples: Sequence[Example] = TEXTS) -> TransformerTranslator:
    torch.manual_seed(0)
    model = make_model(spec, vocabulary(examples, wrap=True), ())
    assert isinstance(model, TransformerTranslator)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name and "raw" not in name and "embedding" not in name:
                parameter.mul_(2)
    return model.eval()


def real(trace: Trace, batch: Batch, row: int) -> Tensor:
    """The logits of the steps that a target has: [step, word]."""
    return trace.logits[row, : int(read_by_decoder(batch).present[row].sum())]


@pytest.mark.parametrize("spec", SPECS[:2])
def test_the_formulas_in_loops(spec: str) -> None:
    model = translator(spec)
    with torch.no_grad():
        model.bias.normal_()
        batch = collate(TEXTS[:4], model.vocabulary)
        trace = model.trace(batch)
        for row, example in enumerate(TEXTS[:4]):
            torch.testing.assert_close(real(trace, batch, row), slow_logits(model, example), atol=1e-4, rtol=1e-4)


def test_sites_in_the_order_of_computation() -> None:
    model, seen = translator(), []

    def watch(site: Site) -> Tensor:
        seen.append(site.name)
        return site.weights

    trace = model.trace(collate(TEXTS, model.vocabulary), intervene=watch)
    assert tuple(seen) == model.sites == (*tuple(trace.attention)[:2], "decoder.0", "cross.0", "decoder.1", "cross.1")
    assert model.sites[:2] == ("encoder.0", "encoder.1")


@pytest.mark.parametrize("spec", SPECS)
def test_weights_are_distributions_over_what_may_be_seen(spec: str) -> None:
    model = translator(spec)
    batch = collate(TEXTS, model.vocabulary)
    trace = model.trace(batch)
    source = torch.tensor([len(e.texts[0]) + 2 for e in TEXTS])  # with both wrappers
    steps = torch.tensor([len(e.texts[1]) + 1 for e in TEXTS])
    sizes = {"encoder": (source, source), "decoder": (steps, steps), "cross": (steps, source)}
    for site, weights in trace.attention.items():
        queries, keys = sizes[site.partition(".")[0]]
        assert weights.shape == (len(TEXTS), 2, int(queries.max()), int(keys.max()))
        for row in range(len(TEXTS)):
            own = weights[row, :, : queries[row], : keys[row]]
            torch.testing.assert_close(own.sum(-1), torch.ones_like(own[..., 0]), atol=1e-5, rtol=0)
            assert weights[row].sum().item() == pytest.approx(2 * int(queries[row]), abs=1e-4)  # none elsewhere
            if site.startswith("decoder"):
                assert own.triu(1).abs().sum().item() == 0
        assert trace.states[site].shape == (len(TEXTS), weights.shape[-1], 8)


def test_owners_are_words_only() -> None:
    model = translator()
    batch = collate(TEXTS[:1], model.vocabulary)
    n = len(TEXTS[0].texts[0])
    trace = model.trace(batch)
    source, target = [-1, *range(1, n + 1), -1], [-1] * (n + 2)
    assert trace.owner["encoder.1"].tolist() == trace.owner["cross.0"].tolist() == [source + target]
    assert trace.owner["decoder.0"].tolist() == [target + source]


def test_what_is_moved_times_the_weights_is_what_an_attention_adds() -> None:
    """One head: out = Σ α W_O W_V x + (W_O b_V weights + b_O): differences of queries are those of α · moved."""
    model = translator("translator:architecture=transformer,hidden=8,heads=1,layers=1")
    batch = collate(TEXTS[:1], model.vocabulary)
    outs: dict[str, Tensor] = {}
    parts = {"encoder.0": model.encoder.get_submodule("layers.0.attention.out")}
    parts |= {
        f"{s}.0": model.decoder.get_submodule(f"layers.0.{n}.out") for s, n in (("decoder", "own"), ("cross", "cross"))
    }
    for site, part in parts.items():
        part.register_forward_hook(lambda _m, _i, out, site=site: outs.update({site: out}))
    trace = model.trace(batch)
    for site in model.sites:
        expected = trace.attention[site][:, 0] @ trace.states[site]
        torch.testing.assert_close(outs[site][:, 1:] - outs[site][:, :1], expected[:, 1:] - expected[:, :1])


@pytest.mark.parametrize(
    ("spec", "intervene"),
    [*((spec, Permute(seed=3)) for spec in SPECS), (SMALL, None), (SMALL, Random()), (SMALL, Permute("decoder.1"))],
)
def test_steps_one_by_one_are_the_trace(spec: str, intervene: Intervention | None) -> None:
    model = translator(spec).double()
    batch = collate(TEXTS, model.vocabulary)
    with torch.no_grad():
        trace, steps = model.trace(batch, intervene=intervene), read_by_decoder(batch)
        tokens, writing = steps.take(batch.tokens), model.begin(batch, intervene=intervene)
        for step in range(tokens.shape[1]):
            logits, writing = model.advance(writing, tokens[:, step])
            there = steps.present[:, step]
            torch.testing.assert_close(logits[there], trace.logits[there, step], atol=1e-9, rtol=1e-9)
    assert writing.step == tokens.shape[1]


def test_an_intervention_changes_what_is_written() -> None:
    """What the test above compares is not the same with and without."""
    model = translator()
    batch = collate(TEXTS, model.vocabulary)
    plain = model.trace(batch).logits
    for site in model.sites:
        assert (model.trace(batch, intervene=Permute(site=site)).logits - plain).abs().max().item() > 1e-3


def test_beams_are_rows_of_what_is_remembered() -> None:
    model = translator()
    batch = collate(TEXTS[:3], model.vocabulary)
    at, which = Permute(), torch.tensor([2, 0, 0])
    with torch.no_grad():
        start = torch.full((3,), START)
        _, writing = model.advance(model.begin(batch, intervene=at), start)
        mixed, _ = model.advance(writing.rows(which), torch.tensor([5, 6, 7]))
        for row, (place, token) in enumerate(zip(which.tolist(), (5, 6, 7), strict=True)):
            alone = collate([TEXTS[place]], model.vocabulary)
            _, one = model.advance(model.begin(alone, intervene=at), start[:1])
            logits, _ = model.advance(one, torch.tensor([token]))
            torch.testing.assert_close(mixed[row], logits[0], atol=1e-5, rtol=1e-5)


def test_later_words_change_nothing() -> None:
    model = translator()
    example = TEXTS[0]
    changed = Example(0, (example.texts[0], (*example.texts[1][:-1], "A" if example.texts[1][-1] != "A" else "B")), 0)
    one, other = (model.trace(collate([e], model.vocabulary)).logits[0] for e in (example, changed))
    torch.testing.assert_close(one[:-1], other[:-1])
    assert (one[-1] - other[-1]).abs().max().item() > 1e-3


def test_the_last_step() -> None:
    model = translator()
    batch = collate(TEXTS, model.vocabulary)
    last, trace, step = model.last(batch), model.trace(batch), last_step(batch)
    for row in range(len(TEXTS)):
        torch.testing.assert_close(last.logits[row], trace.logits[row, step[row]])
        torch.testing.assert_close(last.attention["cross.1"][row, :, 0], trace.attention["cross.1"][row, :, step[row]])
    assert last.attention["decoder.0"].shape[2] == 1
    assert last.attention["encoder.0"].shape == trace.attention["encoder.0"].shape


def test_embeddings_may_be_given() -> None:
    model = translator()
    batch = collate(TEXTS, model.vocabulary)
    torch.testing.assert_close(model.trace(batch, embedded=model.embed(batch)).logits, model.trace(batch).logits)
    embedded = model.embed(batch).detach().requires_grad_()
    model.trace(batch, embedded=embedded).logits[0, 0].sum().backward()
    assert embedded.grad is not None
    moved = embedded.grad[0].abs().sum(-1) > 0
    assert moved[: len(TEXTS[0].texts[0]) + 3].all()  # the source with its wrappers, and the target's start
    assert not moved[len(TEXTS[0].texts[0]) + 3 :].any()


@pytest.mark.parametrize(("norm", "count"), [("pre", 2 * 3 * 5 + 2 * 2), ("post", 2 * 3 * 5)])
def test_attention_parameters_decide_weights_and_nothing_else(norm: str, count: int) -> None:
    """With weights imposed they have no gradient, and all others have one.

    There are two maps with biases and an alpha in each of two layers' three attentions, and norms of queries alone.
    """
    model = translator(f"{SMALL},norm={norm},projection=entmax,learned=true")
    own = {id(p) for p in model.attention_parameters()}
    assert len(own) == count
    model.trace(collate(TEXTS, model.vocabulary), intervene=Uniform()).logits.pow(3).sum().backward()
    for name, parameter in model.named_parameters():
        idle = parameter.grad is None or not bool(parameter.grad.any())
        assert idle == (id(parameter) in own), name


def test_a_source_without_words_is_translated_from_its_wrappers() -> None:
    model = translator()
    empty = Example(0, ((), ("A",)), 0)
    assert bool(model.trace(collate([empty], model.vocabulary)).logits.isfinite().all())


def test_what_is_gold() -> None:
    model = translator()
    batch = collate(TEXTS[:2], model.vocabulary)
    assert model.trace(batch).logits.shape[:2] == gold(batch).shape


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("hidden=9,heads=2", "2 heads can't share hidden=9"),
        ("hidden=8,size=6", "size=6 must be hidden=8"),
        ("attention=luong", "attention can't be set with architecture=transformer"),
    ],
)
def test_settings_that_do_not_fit(settings: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        MODELS.make(f"translator:architecture=transformer,{settings}")


def test_settings_of_the_other_architecture() -> None:
    with pytest.raises(UsageError, match="heads and inner can't be set with architecture=rnn"):
        MODELS.make("translator:heads=2,inner=4")


def test_what_a_transformer_is_without_settings() -> None:
    made = MODELS.make("translator:architecture=transformer,hidden=64")
    assert (made.layers, made.heads, made.size, made.dropout) == (3, 4, 64, 0.1)
    assert MODELS.make("translator").layers == 1


@pytest.mark.slow
def test_it_learns_to_translate() -> None:
    task = load_task("toy_translation")
    model = build_model("translator:architecture=transformer,hidden=64,layers=2", task)
    settings = TrainingSettings(epochs=5, metric="loss", lr=3e-3, warmup=200, clip=1, smoothing=0.1, weight_decay=0)
    Fit(model, task, settings, 0).run()
    assert (evaluate(model, task.split("test"))["accuracy"] or 0) > 0.98
