"""The Transformer classifier: against the formulas, alone and in padded batches, its sites, its training."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.erased_texts import write
from exegete.models.build import build, make_model
from exegete.models.capabilities import Pooling, SelfAttentive
from exegete.models.contract import Site
from exegete.models.ours.perturbations import parts, randomise
from exegete.models.ours.self_attention import EncoderLayer
from exegete.models.ours.transformer import Transformer
from exegete.models.projections import Entmax, Softmax, Sparsemax
from exegete.models.settings import MODELS
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example, Task
from exegete.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from exegete.training.evaluation import evaluate
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.models.test_self_attention import slow_feed, slow_heads, slow_norm
from tests.small import TRANSFORMERS, batch_of, small_model, small_task, texts, vocabulary

EXAMPLES = texts(9)
SITES = ("encoder.0", "encoder.1", "attention")


def transformer(
    spec: str = TRANSFORMERS[0], wrap: bool = False, labels: tuple[str, ...] = ("no", "yes")
) -> Transformer:
    """With weights that tell texts apart, in float64."""
    model = small_model(spec, EXAMPLES, wrap, labels).double()
    assert isinstance(model, Transformer)
    return model


def slow(model: Transformer, rows: list[int], words: list[bool]) -> Tensor:
    """Logits of one text from rows of the vocabulary, straight from the papers, for softmax and norms in front."""
    stack, size = model.encoder, model.encoder.out
    x, times = [], math.sqrt(size) if model.settings.scaled else 1.0
    for place, row in enumerate(rows):
        angle = [place / 10_000 ** (2 * (i // 2) / size) for i in range(size)]
        position = [math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(angle)]
        x.append(stack.enter(model.embedding.weight[row]) * times + torch.tensor(position).double())
    for layer in stack.layers:
        assert isinstance(layer, EncoderLayer)
        y = [slow_norm(layer.around_attention.norm, v) for v in x]
        mixed = slow_heads(layer.attention, y, y, [[True] * len(y)] * len(y))
        x = [a + b for a, b in zip(x, mixed, strict=True)]
        x = [v + slow_feed(layer.feed_forward, slow_norm(layer.around_feed_forward.norm, v)) for v in x]
    states = [v for v, word in zip(x, words, strict=True) if word]
    u = model.scorer.linear.weight[0]
    scores = [math.exp(float(u @ h) / math.sqrt(size)) for h in states]
    context = sum((s / sum(scores) * h for s, h in zip(scores, states, strict=True)), torch.zeros(size).double())
    z: Tensor = model.decoder.weight @ context + model.decoder.bias
    return torch.stack([-z[0] / 2, z[0] / 2]) if len(z) == 1 else z


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("labels", [("no", "yes"), ("x", "y", "z")])
@pytest.mark.parametrize("more", ["", ",scaled=false"])
@torch.no_grad()
def test_it_predicts_as_the_formulas_say(labels: tuple[str, ...], wrap: bool, more: str) -> None:
    model = transformer(TRANSFORMERS[0] + more, wrap, labels)
    batch = batch_of(model, EXAMPLES)
    logits = model.trace(batch).logits
    for row in range(len(EXAMPLES)):
        there = batch.present[row]
        expected = slow(model, batch.tokens[row][there].tolist(), batch.words[row][there].tolist())
        torch.testing.assert_close(logits[row], expected, atol=1e-6, rtol=1e-6)  # positions are float32
    assert logits.std(0).min() > 0.05


@torch.no_grad()
def test_an_ordinary_model_is_the_same_in_batches_to_1e_5_in_single_precision() -> None:
    task = small_task(60)
    model = build("transformer", task).eval()
    assert isinstance(model, Transformer)
    some = task.split("train")
    whole = model.trace(batch_of(model, some)).logits
    for row, e in enumerate(some):
        assert (model.trace(batch_of(model, [e])).logits[0] - whole[row]).abs().max() < 1e-5


@pytest.mark.parametrize("wrap", [False, True])
def test_shapes_owners_and_sums(wrap: bool) -> None:
    model = transformer(wrap=wrap)
    batch = batch_of(model, EXAMPLES)
    trace, (size, width) = model.trace(batch), batch.tokens.shape
    assert model.sites == SITES
    assert isinstance(model, Pooling)
    assert isinstance(model, SelfAttentive)
    assert model.self_attention == SITES[:-1]
    for site in SITES[:-1]:
        assert trace.attention[site].shape == (size, 2, width, width)
        torch.testing.assert_close(trace.attention[site].sum(-1), batch.present[:, None].expand(-1, 2, -1).double())
    assert trace.attention["attention"].shape == (size, 1, 1, width)
    torch.testing.assert_close(trace.attention["attention"][:, 0, 0].sum(-1), torch.ones(size).double())
    assert bool((trace.attention["attention"][:, 0, 0][~batch.words] == 0).all())
    places = torch.arange(width).expand(size, width)
    for site in SITES:
        assert trace.states[site].shape == (size, width, 6)
        assert torch.equal(trace.owner[site], torch.where(batch.words, places, -1))


@torch.no_grad()
def test_encode_and_decode_are_of_the_last_site_and_intervene_below_it() -> None:
    model = transformer()
    batch = batch_of(model, EXAMPLES)

    def even(site: Site) -> Tensor:
        return site.mask / site.mask.sum(-1, keepdim=True).clamp(min=1) * torch.ones_like(site.weights)

    def below(site: Site) -> Tensor:
        return even(site) if site.name != "attention" else site.weights

    plain, changed = model.encode(batch), model.encode(batch, intervene=even)
    trace, under = model.trace(batch), model.trace(batch, intervene=below)
    torch.testing.assert_close(model.decode(plain, trace.attention["attention"][:, 0])[:, 0], trace.logits)
    torch.testing.assert_close(changed.states, under.states["attention"])
    assert not torch.allclose(changed.states, plain.states)
    for site in SITES[:-1]:
        assert torch.equal(under.attention[site], even_of(batch, 2))
    assert set(names(model, batch)) == set(SITES)


def even_of(batch: Batch, heads: int) -> Tensor:
    seen = batch.present[:, :, None] & batch.present[:, None]
    return (seen / seen.sum(-1, keepdim=True).clamp(min=1)).double()[:, None].expand(-1, heads, -1, -1)


def names(model: Transformer, batch: Batch) -> list[str]:
    """The sites that an intervention is shown."""
    seen: list[str] = []

    def look(site: Site) -> Tensor:
        seen.append(site.name)
        return site.weights

    model.trace(batch, intervene=look)
    return seen


@torch.no_grad()
def test_words_are_pooled_as_what_one_head_moves() -> None:
    """With one head and one layer, what a layer adds is Σ_j A_ij f(x_j) and the output's bias."""
    model = transformer("transformer:size=7,hidden=6,scale=1,layers=1")
    batch = batch_of(model, EXAMPLES[:1])
    trace, layer = model.trace(batch), model.encoder.layers[0]
    assert isinstance(layer, EncoderLayer)
    x = layer.around_attention.enter(model.encoder._placed(model.embed(batch), batch.present))
    mixed = layer.attention(x, x, batch.present[:, None, None])[0]
    moved = trace.attention["encoder.0"][:, 0] @ trace.states["encoder.0"]
    torch.testing.assert_close(mixed, moved + layer.attention.out.bias)


@torch.no_grad()
def test_a_text_without_words_and_one_that_lost_some() -> None:
    model = transformer()
    nothing = Example(50, ((),), 0)
    trace = model.trace(batch_of(model, [nothing, *EXAMPLES[:2]]))
    torch.testing.assert_close(trace.logits[0], model.two_sided(model.decoder.bias))
    assert all(bool(w.isfinite().all()) for w in trace.attention.values())
    e = next(e for e in EXAMPLES if len(e) > 3)
    gone = torch.zeros(1, len(e), dtype=torch.bool)
    gone[0, 1] = True
    left = write(batch_of(model, [e]), torch.tensor([0]), gone, "delete").batch(torch.tensor([0]))[0]
    shorter = batch_of(model, [Example(51, ((e.words[0], *e.words[2:]),), 0)])
    torch.testing.assert_close(model.trace(left).logits, model.trace(shorter).logits)


@torch.no_grad()
def test_the_order_of_words_matters_only_with_positions() -> None:
    for positions in (True, False):
        model = transformer(f"{TRANSFORMERS[0]},positions={str(positions).lower()}")
        there, back = (Example(0, (words,), 0) for words in (("a", "b", "c", "d"), ("d", "c", "b", "a")))
        first, second = (model.trace(batch_of(model, [e])).logits for e in (there, back))
        assert torch.allclose(first, second) is not positions


def test_projections_in_every_layer_or_in_the_pool_only() -> None:
    every, last = transformer(TRANSFORMERS[1]), transformer(TRANSFORMERS[2])
    kinds = [[type(layer.attention.project) for layer in m.encoder.layers] for m in (every, last)]  # type: ignore[union-attr]
    assert kinds == [[Entmax], [Softmax, Softmax]]
    assert (type(every.project), type(last.project)) == (Entmax, Sparsemax)
    learned = transformer("transformer:size=4,hidden=4,projection=entmax,learned=true,alpha=1.3")
    named = {n for n, _ in learned.named_parameters() if n.endswith("raw")}
    assert len(named) == 3  # one α per attention


def test_attention_parameters_decide_weights_and_nothing_else() -> None:
    model = transformer("transformer:size=7,hidden=6,scale=1,projection=entmax,learned=true")
    own = {id(p) for p in model.attention_parameters()}
    found = {name.rpartition(".")[0] for name, p in model.named_parameters() if id(p) in own}
    layers = {f"encoder.layers.{i}.attention.{part}" for i in (0, 1) for part in ("query", "key", "project")}
    assert found == layers | {"scorer.linear", "project"}

    def held(site: Site) -> Tensor:
        return site.weights.detach()

    model.trace(batch_of(model, EXAMPLES), intervene=held).logits.sum().backward()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is None) == (id(parameter) in own), name


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("transformer:hidden=10,heads=3", "3 heads can't share hidden=10"),
        ("transformer:attention=none", "tanh"),
        ("transformer:layers=0", "layers"),
        ("transformer:dropout=1", "dropout"),
        ("transformer:lam=0.5", "lam goes with"),
    ],
)
def test_settings_that_do_not_fit_are_one_sentence(spec: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        MODELS.make(spec)


def test_embeddings_of_another_size_are_mapped() -> None:
    words = vocabulary(EXAMPLES)
    same, other = (make_model(f"transformer:size={n},hidden=6", words, ("no", "yes")) for n in (6, 9))
    assert isinstance(same, Transformer)
    assert isinstance(other, Transformer)
    assert isinstance(same.encoder.enter, torch.nn.Identity)
    assert other.encoder.enter.get_parameter("weight").shape == (6, 9)
    assert same.encoder.layers[0].feed_forward[0].out_features == 24  # type: ignore[union-attr, index]


def training(task: Task, epochs: int) -> Fit:
    model = build("transformer:size=8,hidden=8,inner=16,scale=1,dropout=0.05", task, seed=1)
    return Fit(model, task, TrainingSettings(epochs=epochs, lr=0.01, metric="accuracy", patience=9), 1)


def test_it_learns_resumes_and_comes_back_from_a_checkpoint(tmp_path: Path) -> None:
    task = small_task(80)
    whole, half, rest = training(task, 6), training(task, 2), training(task, 6)
    whole.run()
    rest.resume(half.run())
    rest.run()
    for a, b in zip(whole.model.parameters(), rest.model.parameters(), strict=True):
        assert torch.equal(a, b)  # dropout too depends on seed and epoch alone
    assert (evaluate(whole.model, task.split("test"))["accuracy"] or 0) > 0.9
    save_checkpoint(tmp_path / "t", Checkpoint(whole.model, "small", "", 1, {}, {}))
    loaded, batch = load_checkpoint(tmp_path / "t").model, whole.model.collate(task.split("test"))
    assert torch.equal(loaded.trace(batch).logits, whole.model.trace(batch).logits)


def test_its_parts_can_be_drawn_anew() -> None:
    model = transformer()
    assert parts(model) == ("decoder", "scorer", "encoder", "embedding")
    batch = batch_of(model, EXAMPLES)
    before = model.trace(batch).logits
    with randomise(model, ["encoder"], 0):
        assert not torch.allclose(model.trace(batch).logits, before)
    assert torch.equal(model.trace(batch).logits, before)
