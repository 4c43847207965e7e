"""The contract of a model, as properties that hold for every kind of model (`tests.models.contracted`)."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.models.capabilities import Paired, Pooling, Relevant, Trainable, Voting, Writing
from exegete.models.contract import Intervention, Predictor, Site
from exegete.models.openings import opened, unopened
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import Vocabulary
from tests.models.contracted import FROM_THE_LEFT, KINDS, Case, case
from tests.small import padded

CLOSE = 1e-5
REPLACEMENTS = ("zero", "unknown", "padding", "mean")


@pytest.fixture(params=KINDS)
def given(request: pytest.FixtureRequest) -> Case:
    kind: str = request.param
    return case(kind)


@pytest.fixture
def model(given: Case) -> Predictor:
    return given.model


@pytest.fixture
def batch(given: Case) -> Batch:
    return given.model.collate(given.examples)


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def met(model: Predictor, batch: Batch) -> dict[str, list[Site]]:
    """What an intervention sees, by site; a decoder may come by once per step."""
    found: dict[str, list[Site]] = {}

    def watch(site: Site) -> Tensor:
        found.setdefault(site.name, []).append(site)
        return site.weights

    model.logits(batch, intervene=watch)
    return found


def on_the_last_key(name: str) -> Intervention:
    """All weight of a row at one site on its last real key."""

    def rewritten(site: Site) -> Tensor:
        if site.name != name:
            return site.weights
        mask = site.mask.expand_as(site.weights)
        place = mask.long().cumsum(-1)
        return (mask & (place == mask.sum(-1, keepdim=True))).to(site.weights.dtype)

    return rewritten


def same(a: Tensor, b: Tensor, close: float = CLOSE) -> bool:
    return a.shape == b.shape and bool(torch.allclose(a, b, atol=close, rtol=close))


def test_it_is_a_predictor_with_names(model: Predictor, batch: Batch) -> None:
    assert isinstance(model, Predictor)
    assert model.spec
    assert batch.reader == model.reader
    assert batch.tokens.device == model.device
    classes = len(model.words) if isinstance(model, Writing) else len(model.labels)
    assert model.logits(batch).shape[-1] == classes


def test_sites_that_are_named_are_traced_and_met(model: Predictor, batch: Batch) -> None:
    trace = model.trace(batch)
    assert set(trace.attention) == set(trace.states) == set(trace.owner) == set(met(model, batch)) == set(model.sites)
    assert (model.readout is None) == (not model.sites)
    assert model.readout is None or model.readout.sites[-1] == model.sites[-1]
    for site in model.sites:
        weights, owner = trace.attention[site], trace.owner[site]
        assert weights.shape[0] == trace.states[site].shape[0] == len(batch.ids)
        assert weights.shape[-1] == trace.states[site].shape[1]
        assert owner.shape == batch.tokens.shape


def test_only_what_is_asked_for_is_kept(model: Predictor, batch: Batch) -> None:
    whole = model.trace(batch)
    assert torch.equal(model.logits(batch), whole.logits)
    for keep in ((), *((site,) for site in model.sites), model.sites):
        some = model.trace(batch, keep=keep)
        assert torch.equal(some.logits, whole.logits)
        assert set(some.attention) == set(some.states) == set(some.owner) == set(keep)
        assert all(torch.equal(some.attention[site], whole.attention[site]) for site in keep)
    with pytest.raises(UsageError, match="nowhere"):
        model.trace(batch, keep=("nowhere",))


def test_the_same_weights_change_nothing_and_others_do(model: Predictor, batch: Batch) -> None:
    own = model.logits(batch)
    assert torch.equal(model.logits(batch, intervene=lambda site: site.weights), own)
    assert same(model.logits(batch, intervene=lambda site: site.weights.clone()), own, 1e-6)
    blind = isinstance(model, Voting) and "share=0" in model.spec
    for site in model.sites:
        moved = (model.logits(batch, intervene=on_the_last_key(site)) - own).abs().amax()
        assert (moved > 1e-4) == (not blind), site


def test_rows_of_weights_are_distributions_over_real_keys(model: Predictor, batch: Batch) -> None:
    gated = model.readout is not None and model.readout.gated
    for site in (site for sites in met(model, batch).values() for site in sites):
        mask = site.mask.expand_as(site.weights)
        assert site.scores.shape == site.weights.shape
        assert site.weights[~mask].abs().sum() == 0
        assert site.weights.min() >= 0
        total, real = site.weights.sum(-1), mask.any(-1)
        assert (total[real] < 1 + CLOSE).all()
        assert gated or same(total[real], torch.ones_like(total[real]))
    for weights in model.trace(batch).attention.values():
        total = weights.sum(-1)
        assert gated or bool(((total - 1).abs().minimum(total.abs()) < CLOSE).all())


def own_part(weights: Tensor, like: Tensor) -> Tensor:
    """Of weights in a larger batch those that a text has alone; the rest must be 0."""
    inside = weights[:, : like.shape[1], : like.shape[2]]
    assert same(weights.abs().sum(), inside.abs().sum())
    return inside


def test_a_text_alone_and_in_a_batch_is_predicted_alike(given: Case, batch: Batch) -> None:
    model, together = given.model, given.model.trace(batch)
    for row, example in enumerate(given.examples):
        alone = model.trace(model.collate([example]))
        steps = alone.logits.shape[1]
        assert same(together.logits[row, :steps], alone.logits[0])
        for site in model.sites:
            assert same(own_part(together.attention[site][row], alone.attention[site][0]), alone.attention[site][0])


def test_padding_does_not_matter(model: Predictor, batch: Batch) -> None:
    own, other = model.trace(batch), model.trace(padded(batch, 0, 3))
    assert same(own.logits, other.logits)
    for site in model.sites:
        for weights, wider in zip(own.attention[site], other.attention[site], strict=True):
            assert same(own_part(wider, weights), weights)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in FROM_THE_LEFT])
def test_padding_before_a_text_does_not_matter(kind: str) -> None:
    model, examples = case(kind)
    batch = model.collate(examples)
    assert same(model.logits(padded(batch, 2, 3)), model.logits(batch))


def test_a_batch_of_another_reader_is_refused(model: Predictor, batch: Batch) -> None:
    foreign = batch._replace(reader=Vocabulary(("quite", "other"), wrap=True))
    calls: tuple[Callable[[Batch], object], ...] = (model.embed, model.logits, model.trace)
    for call in calls:
        with pytest.raises(UsageError, match="another model's vocabulary"):
            call(foreign)


def test_the_readout_sums_to_what_it_must(model: Predictor, batch: Batch) -> None:
    if model.readout is None:
        return
    trace = model.trace(batch)
    read = trace.read(model.readout)
    assert read.shape == (len(batch.ids), trace.attention[model.readout.sites[-1]].shape[1], read.shape[-1])
    total = read.sum(-1)
    assert same(total, torch.ones_like(total)) if not model.readout.gated else bool((total < 1 + CLOSE).all())


def test_owners_are_the_keys_of_words(model: Predictor, batch: Batch) -> None:
    trace, sites = model.trace(batch), met(model, batch)
    for name in model.sites:
        owner, keys = trace.owner[name], trace.attention[name].shape[-1]
        owned = owner >= 0
        assert (owned <= (batch.sentence >= 0)).all()  # no wrapper and no padding has a key of its own
        assert (owner < keys).all()
        reach = torch.stack([site.mask.expand_as(site.weights).any(2).any(1) for site in sites[name]]).any(0)
        asked = owned & (batch.cost > 0)
        if "rationale" not in model.spec:  # where words that were not selected are no keys
            assert reach.gather(1, owner.clamp(min=0))[asked].all()
    if model.readout is not None:
        assert (batch.words <= (trace.owner[model.readout.sites[-1]] >= 0)).all()


def hooks(model: Predictor) -> int:
    names = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    modules = model.modules() if isinstance(model, nn.Module) else ()
    return sum(len(getattr(module, name)) for module in modules for name in names)


def test_nothing_is_left_after_an_exception_in_an_intervention(model: Predictor, batch: Batch) -> None:
    own, before = model.logits(batch), hooks(model)

    def fail(site: Site) -> Tensor:
        raise RuntimeError(site.name)

    if model.sites:
        with pytest.raises(RuntimeError):
            model.logits(batch, intervene=fail)
    assert hooks(model) == before
    assert torch.equal(model.logits(batch), own)
    assert not (isinstance(model, nn.Module) and model.training)


def test_embeddings_can_be_given_and_have_gradients(model: Predictor, batch: Batch) -> None:
    with torch.enable_grad():
        embedded = model.embed(batch).detach().requires_grad_()
        logits = model.logits(batch, embedded=embedded)
        assert same(logits, model.logits(batch), 1e-6)
        (slope,) = torch.autograd.grad(logits.square().sum(), embedded)
    assert slope.isfinite().all()
    felt = slope.abs().sum(-1) > 0
    assert (felt & batch.words).any(-1).all()  # in every text
    assert not (felt & ~batch.present).any()


@pytest.mark.parametrize("by", REPLACEMENTS)
def test_words_are_replaced_and_keep_their_width(model: Predictor, batch: Batch, by: str) -> None:
    first = batch.words & (batch.words.cumsum(-1) == 1)
    own, other = model.embed(batch), model.replaced(batch, first, by)  # type: ignore[arg-type]
    assert other.shape == own.shape
    assert torch.equal(other[~first], own[~first])
    assert (other[first] != own[first]).any(-1).all()
    assert by != "zero" or not other[first].any()
    logits = model.logits(batch, embedded=other)
    assert logits.isfinite().all()
    assert not same(logits, model.logits(batch))


def test_a_zeroed_word_is_not_a_deleted_word(given: Case) -> None:
    model, examples = given.model, [e for e in given.examples if len(e) > 1]
    batch = model.collate(examples)
    first = batch.words & (batch.words.cumsum(-1) == 1)
    zeroed = model.logits(batch, embedded=model.replaced(batch, first, "zero"))
    deleted = model.logits(model.collate([without_first(e) for e in examples]))
    assert not same(zeroed, deleted)


def without_first(example: Example) -> Example:
    shown = example.explained
    return replace(example, texts=tuple(t[1:] if i == shown else t for i, t in enumerate(example.texts)))


def test_the_fingerprint_is_of_the_weights(model: Predictor) -> None:
    assert isinstance(model, nn.Module)
    before, weight = model.fingerprint(), next(p for p in model.parameters() if p.numel() > 1).view(-1)
    kept = weight[-1].item()
    weight[-1] += 1
    other = model.fingerprint()
    weight[-1] = kept
    assert before == model.fingerprint() != other


def test_a_model_to_be_trained_says_what_it_is_rebuilt_from(model: Predictor) -> None:
    assert isinstance(model, Trainable)
    assert {id(p) for p in model.attention_parameters()} <= {id(p) for p in model.parameters()}
    assert json.loads(json.dumps(model.state()))["model"] == model.spec


def test_capabilities_agree_with_predictions(model: Predictor, batch: Batch) -> None:
    own = model.logits(batch)
    if unopened(model) is None and not isinstance(model, Writing):
        assert same(opened(model, batch).own.to(own.dtype), own)
    if isinstance(model, Pooling) and not isinstance(model, Writing):
        encoded = model.encode(batch)
        weights = model.weigh(encoded.scores, encoded.mask)
        assert same(model.decode(encoded, weights[:, None])[:, 0], own)
    assert isinstance(model, Paired) == ("pair" in model.spec)


def test_layers_compute_what_the_model_computes(given: Case) -> None:
    from exegete.importance.relevance import RULES

    model = given.model
    if not isinstance(model, Relevant):
        return
    met: set[str] = set()

    def layers(kind: str, *arguments: Tensor) -> Tensor:
        met.add(kind)
        return RULES[kind].compute(*arguments)

    for example in given.examples:
        batch = model.collate([example])
        found = model.layered(batch, model.embed(batch).double(), layers)
        assert same(found.logits.to(torch.get_default_dtype()), model.logits(batch))
    assert met == set(model.layer_kinds)
