"""Every importance on models of transformers: by hand, and all of a real one alone as in a batch."""

import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from exegete.importance.attention_x_gradient import AttentionXGradient
from exegete.importance.baselines import Baseline
from exegete.importance.catalogue import IMPORTANCES, computable
from exegete.importance.checks import complaints
from exegete.importance.contract import Target, refusal
from exegete.importance.integrated_gradients import EVEN, FROM_ZERO, KINKS, WAVES, WAVES_FROM_ZERO, IntegratedGradients
from exegete.importance.sharing import sharing
from exegete.models.contract import Site
from exegete.models.huggingface.build import build_from_spec
from exegete.models.huggingface.model import HuggingFace
from exegete.tasks.example import Example
from tests.models.architectures import classifier
from tests.models.tiny import bert, bert_folder, in_memory, roberta
from tests.small import SPECS, small_model, texts

TEXTS = ("an unbelievably charming movie of plot", "bad", "a dull ok", "terrific \u200b movie of a bad plot")
EXAMPLES = tuple(Example(i, (tuple(text.split(" ")),), i % 2) for i, text in enumerate(TEXTS))
CHEAP = {
    "integrated_gradients": "integrated_gradients:steps=8,most=32", "smoothgrad": "smoothgrad:samples=4",
    "lime": "lime:samples=20", "kernel_shap": "kernel_shap:samples=20",
}  # fmt: skip
BASELINES = tuple(f"integrated_gradients:steps=4,most=16,baseline={name}" for name in ("unknown", "padding", "mean"))
AT_SITES = ("attention:site=encoder.0", "attention_x_gradient:site=all", "attention_x_norm:site=encoder.0")
METHODS = (*(CHEAP.get(name, name) for name in computable()), "lrp:attention=half", *BASELINES, *AT_SITES)
REFUSED = ("deeplift",)
NOT_ALWAYS = ("blocking",)  # refused where a head reads the mean of all states


@cache
def model_of(name: str) -> HuggingFace:
    if name in ("mean", "attention"):
        torch.manual_seed(0)
        return build_from_spec(f"hf:{bert_folder()}:head={name}", labels=("no", "yes"))
    return in_memory(*(bert() if name == "bert" else roberta()))


def checked(model: HuggingFace, method: str, examples: tuple[Example, ...]) -> None:
    """Right shape, words alone, and a text scores the same whatever stands beside it."""
    importance = IMPORTANCES.make(method)
    if (reason := refusal(importance, model)) is not None:
        assert method.partition(":")[0] in (*REFUSED, *NOT_ALWAYS), reason
        assert " " in reason.strip()
        return
    assert method.partition(":")[0] not in REFUSED
    batch = model.collate(examples)
    with sharing():
        whole = importance(model, batch)
    assert whole.values.shape == batch.tokens.shape
    assert torch.equal(whole.values.isfinite(), batch.words)
    assert torch.equal(whole.values.isnan(), ~batch.words)
    assert whole.values[batch.words].any()
    for i, e in enumerate(examples):
        alone = importance(model, model.collate([e])).values[0]
        torch.testing.assert_close(
            alone, whole.values[i, : len(alone)], atol=1e-5, rtol=1e-5, equal_nan=True, check_dtype=False
        )


def test_attention_x_gradient_of_all_layers_is_the_sum_of_each() -> None:
    model = model_of("bert")
    batch = model.collate(EXAMPLES)
    whole = AttentionXGradient("all")(model, batch).values
    each = [AttentionXGradient(site)(model, batch).values for site in model.sites]
    torch.testing.assert_close(whole, each[0] + each[1], atol=1e-6, rtol=1e-5, equal_nan=True)
    assert each[0].nansum() != 0
    assert "has none" in str(AttentionXGradient("all").refuses(small_model(SPECS[0], texts(2))))


def test_the_derivative_by_weights_of_the_first_layer_follows_the_second() -> None:
    """By central differences on one weight of a word."""
    model = in_memory(bert()[0].double(), bert()[1])
    batch = model.collate(EXAMPLES[2:3])
    target = Target(torch.tensor([1]))
    got = AttentionXGradient("encoder.0")(model, batch, target).values[0]

    def logit(key: int, step: float) -> float:
        def moved(site: Site) -> torch.Tensor:
            if site.name != "encoder.0":
                return site.weights
            scale = torch.ones(site.weights.shape[-1], dtype=site.weights.dtype)
            scale[key] += step
            return site.weights * scale  # so that the derivative by the step is Σ α ∂f/∂α

        with torch.no_grad():
            return float(model.logits(batch, intervene=moved)[0, 1])

    for key in batch.words[0].nonzero()[:, 0].tolist():
        slope = (logit(key, 1e-5) - logit(key, -1e-5)) / 2e-5
        assert float(got[key]) == pytest.approx(slope, rel=1e-4, abs=1e-8)


def test_flow_from_one_state_is_cautioned() -> None:
    for name, said in (("bert", True), ("mean", False), ("attention", False)):
        model = model_of(name)
        batch = model.collate(EXAMPLES)
        scores = IMPORTANCES.make("flow")(model, batch)
        assert [complaint is not None for complaint in complaints(scores, batch)] == [said] * len(EXAMPLES)


def test_the_way_through_a_transformer_starts_with_more_points() -> None:
    """With few points the sum may be right by chance while words are not; a number that is given is taken."""
    theirs, ours = model_of("bert"), small_model(SPECS[0], texts(4))
    zero, unknown = IntegratedGradients(bound=0), IntegratedGradients("unknown", bound=0)
    cases = (
        (theirs, EXAMPLES, zero, WAVES_FROM_ZERO),
        (theirs, EXAMPLES, unknown, WAVES),
        (classifier("modernbert"), EXAMPLES, zero, WAVES),  # it turns words by their places, and adds nothing
        (ours, texts(4), zero, KINKS),
    )
    for model, examples, asked, points in cases:
        batch = model.collate(examples)
        for importance, wanted in ((asked, points), (replace(asked, steps=5), 5)):
            spent = importance(model, batch).cost
            assert spent is not None
            assert set(spent.backward.tolist()) == {wanted}
    few = IntegratedGradients(bound=0, most=9)(theirs, theirs.collate(EXAMPLES)).cost
    assert few is not None
    assert set(few.backward.tolist()) == {9}


def test_a_way_that_is_gone_slowly_somewhere_is_the_same_way() -> None:
    """From 0 to 1, ever upwards, at the speed that it says; slowest where it should be."""
    u = torch.linspace(0, 1, 201, dtype=torch.float64, requires_grad=True)
    for pace in (EVEN, FROM_ZERO):
        place = pace.place(u)
        (slope,) = torch.autograd.grad(place.sum(), u)
        assert place[[0, -1]].tolist() == pytest.approx([0, 1], abs=1e-12)
        assert (slope > 0).all()
        assert torch.allclose(slope, pace.speed(u.detach()))
    slowest = FROM_ZERO.place(u)[FROM_ZERO.speed(u).argmin()].item()
    assert slowest == pytest.approx(FROM_ZERO.about, abs=0.01)


def test_integrated_gradients_of_a_transformer_are_those_of_an_even_way() -> None:
    """Against the paper's own sum of many points at one distance."""
    model = model_of("bert")
    batch = model.collate(EXAMPLES)
    sums = IntegratedGradients(bound=0), IntegratedGradients(rule="riemann", steps=1000, bound=0)
    ours, slow = (importance(model, batch).values for importance in sums)
    apart = (ours - slow)[batch.words].abs().max()
    assert apart <= 2e-3 * slow[batch.words].abs().max()


@pytest.mark.parametrize("baseline", ["unknown", "padding"])
def test_baselines_of_integrated_gradients_stand_piece_by_piece(baseline: Baseline) -> None:
    """Every piece of a word is replaced, none of the symbols; and where points run out, the error says so."""
    model = model_of("bert")
    batch = model.collate(EXAMPLES[:1])
    pieces, table = model.pieces(batch), model.tables[0].weight
    piece = model.tokenizer.mask_token_id if baseline == "unknown" else model.tokenizer.pad_token_id
    inside = batch.words[0][pieces.word[0]]
    wanted = torch.where(inside, piece, pieces.ids[0])
    start = pieces.vectors(model.replaced(batch, batch.words, baseline), model.size)[0]
    assert torch.equal(start, table[wanted])
    assert len(wanted) > batch.tokens.shape[1]  # some word has several pieces
    few, many = (IntegratedGradients(baseline, steps=1, most=most, bound=1e-3)(model, batch) for most in (1, 256))
    assert few.error is not None
    assert many.error is not None
    assert float(few.error) > 1e-3 >= float(many.error)
    assert many.cost is not None
    assert int(many.cost.backward) <= 256


@pytest.mark.data
@pytest.mark.parametrize("method", METHODS)
def test_a_real_model_alone_as_in_a_batch(method: str) -> None:
    folder = Path(os.environ.get("EXEGETE_DATA", ".")).parent / "models" / "bert-tiny"
    if not folder.is_dir():
        pytest.skip("bert-tiny does not lie beside the data sets")
    checked(build_from_spec(f"hf:{folder}"), method, EXAMPLES[:2])
