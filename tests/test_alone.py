"""A text scores the same alone, in a batch and beside padding: kinds of models × importances and × interventions.

Predictions alone and in batches are in `tests/models/test_contract.py`, over the kinds of `tests/models/contracted.py`.
Alone are the shortest and the longest text of a kind.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.catalogue import IMPORTANCES, computable
from exegete.importance.contract import refusal
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import bound
from exegete.interventions.impose import Impose
from exegete.interventions.table import WeightTable
from exegete.models.contract import Intervention, Site
from exegete.tasks.example import Example
from tests.models.contracted import FROM_THE_LEFT, KINDS, Case, case
from tests.small import padded

CLOSE = 1e-5
CHEAP = {
    "smoothgrad": "smoothgrad:samples=2",
    "integrated_gradients": "integrated_gradients:steps=4,most=8",
    "lime": "lime:samples=12",
    "kernel_shap": "kernel_shap:samples=12",
}
METHODS = tuple(CHEAP.get(name, name) for name in computable())
VARIANTS = (
    "gradient:detach=true", "gradient:norm=l1,of=probability", "gradient:norm=l2,of=loss",
    "gradient_x_input:of=probability,detach=true", "attention_x_gradient:of=probability",
    "smoothgrad:samples=2,norm=input,of=probability", "random:seed=3",
    "integrated_gradients:steps=4,most=8,baseline=unknown", "integrated_gradients:steps=4,most=8,baseline=padding",
    "integrated_gradients:baseline=mean,rule=riemann,most=8", "lime:samples=12,removal=zero",
    "leave_one_out:of=logit", "leave_one_out:of=probability", "leave_one_out:of=logit,window=2",
)  # fmt: skip
VARIED = ("bilstm, wrapped", "cnn", "hierarchical", "transformer", "pair", "spelled", "hf", "own", "next word")
OFTEN = {*VARIED, "bilstm without attention", "flat", "ladder", "rationale", "own that pools", "hf, pair", "bahdanau"}
AT_SITES = ("attention:site=SITE", "attention_x_norm:site=SITE", "attention_x_gradient:site=SITE")
SEVERAL = ("hierarchical", "hierarchical, convolutions", "transformer", "spelled", "hf", "hf, mean")
BLIND, WRITING = {"bilstm without attention"}, {"bahdanau", "luong", "transformer translator"}
TRANSFORMERS = {kind for kind in KINDS if kind.startswith(("transformer", "spelled", "hf"))} - WRITING
OF_LAYERS = {kind for kind in KINDS if kind.startswith("hf")}
RELEVANT = {kind for kind in KINDS if kind.startswith(("bi", "average", "cnn", "flat", "pair", "hf"))}
LADDERS = {"ladder", "ladder, blind"}
# Methods that some models refuse, and the kinds that they take.
TAKEN: dict[str, set[str]] = {
    **dict.fromkeys(("attention", "attention_x_gradient", "attention_x_norm"), {*KINDS} - BLIND),
    **dict.fromkeys(("rollout", "flow", "reading"), TRANSFORMERS),
    **dict.fromkeys(("value_zeroing", "alti", "globenc", "contribution"), OF_LAYERS),
    "integrated_gradients": {*KINDS} - LADDERS,
    "lrp": RELEVANT - BLIND,
    "deeplift": {"average", "average with gates", "cnn", "flat without encoder"},
    "blocking": {
        "average", "average with gates", "flat", "flat without encoder", "ladder", "own", "own that pools",
        *(TRANSFORMERS - {"spelled, mean", "hf, mean"}),
    },
}  # fmt: skip
ASKED = [kind for kind in KINDS if kind not in WRITING]  # one score per word and prediction

REWRITINGS = (
    *({"adversarial": "adversarial:steps=3"}.get(name, name) for name in INTERVENTIONS),
    "random:fresh=false", "remove:which=bottom,count=2", "remove:which=random,share=0.5", "remove:count=2,how=project",
    "remove:share=1", "keep:count=3", "keep:share=0.5",
)  # fmt: skip
NOT_SEARCHED = BLIND | {kind for kind in KINDS if kind not in ASKED or kind.startswith("next word")}
WORDS_WEIGHED = ("bilstm", "bilstm, wrapped", "cnn", "flat", "pair", "own that pools")  # one weight per word


def each_of(kinds: Iterable[str]) -> list[Any]:
    """Kinds to ask about: one of each sort in the default tier, all in the slow one."""
    return [kind if kind in OFTEN else pytest.param(kind, marks=pytest.mark.slow) for kind in kinds]


def ends(examples: tuple[Example, ...]) -> Iterator[tuple[int, Example]]:
    """The shortest and the longest, each with its place."""
    by_length = sorted(enumerate(examples), key=lambda each: len(each[1]))
    yield from (by_length[0], by_length[-1])


def close(found: Tensor, wanted: Tensor, tolerance: float = CLOSE) -> bool:
    return bool(torch.allclose(found.double(), wanted.double(), atol=tolerance, rtol=tolerance, equal_nan=True))


def check_scores(asked: Case, method: str) -> None:
    """Words have scores and nothing else has; a text has its own, whatever stands beside it."""
    model, importance = asked.model, IMPORTANCES.make(method)
    unread = "share=0," in f"{model.spec},"  # a decoder that reads no weights has no slope by them
    batch = model.collate(asked.examples)
    whole = importance(model, batch)
    assert torch.equal(whole.values.isfinite(), batch.words), method
    assert torch.equal(whole.values.isnan(), ~batch.words), method
    assert whole.values[batch.words].any() or unread, method
    wide = importance(model, padded(batch, 0, 3)).values
    assert close(wide[:, :-3], whole.values), method
    for row, example in ends(asked.examples):
        alone = importance(model, model.collate([example]))
        assert close(alone.values[0], whole.values[row, : alone.values.shape[1]]), method
        assert alone.target.label[0] == whole.target.label[row], method


@pytest.mark.parametrize("kind", each_of(ASKED))
def test_importances_score_words_alone_as_in_a_batch_or_refuse(kind: str) -> None:
    asked = case(kind)
    for method in METHODS + (VARIANTS if kind in VARIED else ()):
        importance, name = IMPORTANCES.make(method), method.partition(":")[0]
        reason = refusal(importance, asked.model)
        assert (reason is None) == (kind in TAKEN.get(name, KINDS)), f"{method}: {reason}"
        if reason is None:
            check_scores(asked, method)
        else:
            with pytest.raises(UsageError):
                importance(asked.model, asked.model.collate(asked.examples))


@pytest.mark.parametrize("kind", each_of(SEVERAL))
def test_importances_at_every_site(kind: str) -> None:
    asked = case(kind)
    methods = {method.replace("SITE", site) for method in AT_SITES for site in asked.model.sites}
    methods |= {"attention_x_gradient:site=all"} if kind in TRANSFORMERS else set()
    for method in sorted(methods):
        check_scores(asked, method)


def rewriting(text: str, asked: Case) -> Intervention:
    """An intervention of the catalogue, for a model; imposed weights are its own, of the text read backwards."""
    if text != "impose":
        intervention: Intervention = bound(INTERVENTIONS.make(text), asked.model)
        return intervention
    table = WeightTable.of(asked.model, asked.examples)
    backwards = WeightTable({words: weights.flip(0) for words, weights in table.rows.items()})
    return bound(Impose(table=backwards), asked.model)


def check_rewriting(kind: str, text: str) -> None:
    """Rows stay distributions over real keys (less with gates), and a text's are its own, whatever stands beside it."""
    model, examples = case(kind)
    at = rewriting(text, case(kind))

    def watched(site: Site) -> Tensor:
        weights = at(site)
        assert (weights >= 0).all(), text
        assert (weights.masked_fill(site.mask.expand_as(weights), 0) == 0).all(), text
        assert (weights.sum(-1) < 1 + CLOSE).all(), text
        return weights

    batch = model.collate(examples)
    together = model.trace(batch, intervene=watched)
    wide = model.trace(padded(batch, 2 * (kind not in FROM_THE_LEFT), 3), intervene=at)
    assert close(wide.logits, together.logits), text
    for row, example in ends(examples):
        alone = model.trace(model.collate([example]), intervene=at)
        assert close(alone.logits[0], together.logits[row, : alone.logits.shape[1]]), text
        for site, weights in alone.attention.items():
            inside = together.attention[site][row, :, : weights.shape[2], : weights.shape[3]]
            assert close(weights[0], inside), text


@pytest.mark.parametrize("kind", each_of(KINDS))
@torch.no_grad()
def test_interventions_rewrite_alone_as_in_a_batch(kind: str) -> None:
    for text in REWRITINGS:
        if text != "impose" or kind in WORDS_WEIGHED:
            if text.startswith("adversarial") and kind in NOT_SEARCHED:
                with pytest.raises(UsageError, match="adversarial"):
                    rewriting(text, case(kind))
            else:
                check_rewriting(kind, text)
