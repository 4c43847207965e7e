"""The hierarchical network: against the formulas in loops, alone and in batches, whole and with words erased."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.erased_texts import write
from exegete.models.build import build, make_classifier
from exegete.models.capabilities import Pooling
from exegete.models.contract import Site
from exegete.models.ours.classifier import Classifier
from exegete.models.ours.encoders import CNN, BiGRU, Identity
from exegete.models.ours.hierarchical import SENTENCE, WORD, Hierarchical, sentences_of
from exegete.models.ours.perturbations import parts, randomise, unshiftable
from exegete.models.settings import MODELS
from exegete.tasks.batching import Batch, collate
from exegete.tasks.example import Example, Task
from exegete.tasks.sentences import split_sentences
from exegete.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from exegete.training.evaluation import evaluate
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.documents import FLAT, HIERARCHICAL, SMALL, document_model, documents, hierarchical, last_state
from tests.small import batch_of, small_task, vocabulary

DOCUMENTS = documents(20)


def slow_gru(gru: torch.nn.GRU, vectors: list[Tensor]) -> list[Tensor]:
    """Cho et al.'s equations, a step at a time, in both directions."""
    sides: list[dict[int, Tensor]] = []
    for suffix, order in (("", range(len(vectors))), ("_reverse", reversed(range(len(vectors))))):
        w, u, b, c = (getattr(gru, f"{n}_l0{suffix}") for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        h, size, out = torch.zeros(gru.hidden_size), gru.hidden_size, {}
        for t in order:
            x, y = (w @ vectors[t] + b).split(size), (u @ h + c).split(size)
            r, z = (x[0] + y[0]).sigmoid(), (x[1] + y[1]).sigmoid()
            h = (1 - z) * (x[2] + r * y[2]).tanh() + z * h
            out[t] = h
        sides.append(out)
    return [torch.cat([side[t] for side in sides]) for t in range(len(vectors))]


def slow_cnn(cnn: CNN, vectors: list[Tensor]) -> list[Tensor]:
    """relu(Σ_j W_j x_{t+j} + b) for every width, zero beyond the ends."""
    states = []
    for t in range(len(vectors)):
        sides = []
        for part in cnn.convolutions:
            weight, total = part.get_parameter("weight"), part.get_parameter("bias").clone()  # [filter, size, width]
            for j in range(weight.shape[2]):
                place = t + j - weight.shape[2] // 2
                if 0 <= place < len(vectors):
                    total = total + weight[:, :, j] @ vectors[place]
            sides.append(total.relu())
        states.append(torch.cat(sides))
    return states


def slow_encode(encoder: torch.nn.Module, vectors: list[Tensor]) -> list[Tensor]:
    if isinstance(encoder, BiGRU):
        return slow_gru(encoder.gru, vectors)
    if isinstance(encoder, CNN):
        return slow_cnn(encoder, vectors)
    assert isinstance(encoder, Identity)
    return vectors


def slow_pool(scorer: torch.nn.Module, states: list[Tensor]) -> tuple[list[float], Tensor]:
    """softmax of v · tanh(A h + a), and the sum of states that it weighs."""
    A, a = scorer.get_parameter("linear.weight"), scorer.get_parameter("linear.bias")
    v = scorer.get_parameter("outer.weight")[0]
    scores = torch.stack([v @ (A @ h + a).tanh() for h in states])
    weights = scores.exp() / scores.exp().sum()
    return weights.tolist(), sum((w * h for w, h in zip(weights, states, strict=True)), torch.zeros_like(states[0]))


def slow(model: Hierarchical, words: tuple[str, ...]) -> tuple[list[list[float]], list[float], Tensor]:
    """Weights of the words of every sentence, weights of the sentences, and logits."""
    within, vectors = [], []
    for sentence in split_sentences(words):
        embedded = [model.embedding.weight[model.vocabulary.index[word]] for word in sentence]
        weights, vector = slow_pool(model.word_scorer, slow_encode(model.encoder, embedded))
        within.append(weights)
        vectors.append(vector)
    across, context = slow_pool(model.scorer, slow_encode(model.sentence_encoder, vectors))
    z = model.decoder.weight @ context + model.decoder.bias
    return within, across, torch.stack([-z[0] / 2, z[0] / 2]) if len(z) == 1 else z


@pytest.mark.parametrize("labels", [("no", "yes"), ("x", "y", "z")])
@pytest.mark.parametrize("encoder", ["rnn", "conv", "none"])
@torch.no_grad()
def test_it_predicts_as_the_formulas_say(encoder: str, labels: tuple[str, ...]) -> None:
    model = hierarchical(f"hierarchical:{SMALL},encoder={encoder}", DOCUMENTS, labels)
    trace = model.trace(batch_of(model, DOCUMENTS))
    for i, e in enumerate(DOCUMENTS):
        within, across, logits = slow(model, e.words)
        assert torch.allclose(trace.logits[i], logits, atol=1e-5)
        assert trace.attention[SENTENCE][i, 0, 0, : len(across)].tolist() == pytest.approx(across, abs=1e-5)
        expected, start = torch.zeros_like(trace.attention[WORD][i, 0]), 0
        for s, weights in enumerate(within):
            expected[s, start : start + len(weights)] = torch.tensor(weights)
            start += len(weights)
        assert torch.allclose(trace.attention[WORD][i, 0], expected, atol=1e-5)
    assert trace.logits.std(0).min() > 0.05  # texts differ, so equal numbers mean something


def test_shapes_owners_and_sums() -> None:
    model = hierarchical(HIERARCHICAL[0], DOCUMENTS)
    batch = batch_of(model, DOCUMENTS)
    trace, (size, width) = model.trace(batch), batch.tokens.shape
    most = int(batch.sentence.max()) + 1
    assert model.sites == (WORD, SENTENCE)
    assert isinstance(model, Pooling)
    assert trace.attention[WORD].shape == (size, 1, most, width)
    assert trace.attention[SENTENCE].shape == (size, 1, 1, most)
    assert trace.states[WORD].shape[:2] == (size, width)
    assert trace.states[SENTENCE].shape[:2] == (size, most)
    assert torch.equal(trace.owner[SENTENCE], batch.sentence)
    real = torch.arange(most) <= batch.sentence.amax(-1)[:, None]
    assert torch.allclose(trace.attention[WORD].sum(-1)[:, 0], real.float(), atol=1e-6)
    assert trace.attention[SENTENCE][:, 0, 0][~real].abs().sum() == 0
    outside = batch.sentence[:, None] != torch.arange(most)[:, None]
    assert trace.attention[WORD][:, 0][outside].abs().sum() == 0


@pytest.mark.parametrize("spec", HIERARCHICAL)
def test_encode_once_decode_many_is_trace(spec: str) -> None:
    model = hierarchical(spec, DOCUMENTS)
    batch = batch_of(model, DOCUMENTS)
    encoded, trace = model.encode(batch), model.trace(batch)
    assert encoded.mask.shape == encoded.scores.shape == trace.attention[SENTENCE].shape[::3]
    assert torch.allclose(model.project(encoded.scores, encoded.mask), trace.attention[SENTENCE][:, 0, 0])
    uniform = encoded.mask / encoded.mask.sum(-1, keepdim=True)
    draws = torch.stack([trace.attention[SENTENCE][:, 0, 0], uniform], 1)
    at_sentences = model.trace(batch, intervene=lambda s: uniform[:, None, None] if s.name == SENTENCE else s.weights)
    assert torch.allclose(model.decode(encoded, draws), torch.stack([trace.logits, at_sentences.logits], 1), atol=1e-5)
    level = model.trace(batch, intervene=Even(WORD))
    lower = model.encode(batch, intervene=Even(WORD))
    weights = model.project(lower.scores, lower.mask)
    assert torch.allclose(model.decode(lower, weights[:, None])[:, 0], level.logits, atol=1e-5)


class Even:
    """The same weight everywhere, at one site; it remembers the sites that it saw."""

    def __init__(self, name: str) -> None:
        self.name, self.seen = name, list[Site]()

    def __call__(self, site: Site) -> Tensor:
        self.seen.append(site)
        return site.mask / site.mask.sum(-1, keepdim=True).clamp(min=1) if site.name == self.name else site.weights


@pytest.mark.parametrize("name", [WORD, SENTENCE])
def test_an_intervention_at_one_level_changes_that_level_and_what_follows(name: str) -> None:
    model = hierarchical(HIERARCHICAL[0], DOCUMENTS)
    batch = batch_of(model, DOCUMENTS)
    intervene = Even(name)
    before, after = model.trace(batch), model.trace(batch, intervene=intervene)
    assert [site.name for site in intervene.seen] == [WORD, SENTENCE]
    assert all(site.scores.shape == site.weights.shape == site.mask.shape for site in intervene.seen)
    changed = {s: not torch.allclose(before.attention[s], after.attention[s], atol=1e-4) for s in model.sites}
    assert changed[name]
    assert changed[SENTENCE]  # sentences are weighed by what their words gave them
    assert changed[WORD] == (name == WORD)
    assert torch.equal(before.states[WORD], after.states[WORD])
    assert torch.equal(before.states[SENTENCE], after.states[SENTENCE]) == (name == SENTENCE)
    several = {WORD: batch.lengths > batch.sentence.amax(-1) + 1, SENTENCE: batch.sentence.amax(-1) > 0}[name]
    moved = (before.logits - after.logits).abs().amax(-1)
    assert (moved[several] > 1e-4).all()
    assert (moved[~several] < 1e-6).all()  # one word per sentence, or one sentence: nothing to redistribute


@pytest.mark.parametrize("spec", HIERARCHICAL)
def test_gradients_reach_both_levels(spec: str) -> None:
    model = hierarchical(spec, DOCUMENTS)
    batch = batch_of(model, DOCUMENTS)
    torch.nn.functional.cross_entropy(model.trace(batch).logits, batch.label).backward()
    attention = {id(p) for p in model.attention_parameters()}
    named = dict(model.named_parameters())
    assert {n for n, p in named.items() if id(p) in attention} == {
        n for n in named if n.split(".")[0] in {"scorer", "project", "word_scorer", "word_project"}
    }
    for name, parameter in named.items():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def without(batch: Batch, gone: Tensor) -> Batch:
    """Words deleted, as the erasure-based importances delete them: sentence numbers stay."""
    rows = torch.arange(len(batch.ids))
    return write(batch, rows, gone, "delete").batch(rows)[0]


@pytest.mark.parametrize("spec", HIERARCHICAL)
def test_an_emptied_sentence_is_absent(spec: str) -> None:
    model = hierarchical(spec, DOCUMENTS)
    batch = batch_of(model, DOCUMENTS)
    for emptied in range(int(batch.sentence.max()) + 1):
        erased = without(batch, batch.sentence == emptied)
        trace = model.trace(erased)
        assert all(t.isfinite().all() for t in (trace.logits, *trace.attention.values(), *trace.states.values()))
        assert trace.owner[SENTENCE].max() < batch.sentence.max()
        for i, e in enumerate(DOCUMENTS):
            rest = tuple(w for n, part in enumerate(split_sentences(e.words)) if n != emptied for w in part)
            if rest and len(split_sentences(rest)) == len(split_sentences(e.words)) - (rest != e.words):
                expected = model.trace(batch_of(model, [Example(0, (rest,), 0)])).logits[0]
                assert torch.allclose(trace.logits[i], expected, atol=1e-5)
            elif not rest:
                assert torch.allclose(trace.logits[i], model.two_sided(model.decoder.bias), atol=1e-6)


@pytest.mark.parametrize("spec", HIERARCHICAL)
def test_a_batch_without_any_word_gets_the_bias_and_gradients_of_zero(spec: str) -> None:
    model = hierarchical(spec, DOCUMENTS)
    batch = batch_of(model, [Example(0, ((),), 0)])
    embedded = model.embed(batch).detach().requires_grad_()
    trace = model.trace(batch, embedded=embedded)
    logits = trace.logits
    assert trace.states[WORD].abs().sum() == trace.states[SENTENCE].abs().sum() == 0
    assert torch.allclose(logits[0], model.two_sided(model.decoder.bias), atol=1e-6)
    (gradient,) = torch.autograd.grad(logits.sum(), embedded)
    assert gradient.abs().sum() == 0


def test_sentences_are_numbered_anew_where_some_are_gone() -> None:
    batch = batch_of(hierarchical(HIERARCHICAL[0], DOCUMENTS), DOCUMENTS[:1])
    sentence = torch.tensor([[-1, 2, 2, 5, -1], [0, 0, 1, 1, 2], [-1, -1, -1, -1, -1]])
    batch = batch._replace(words=sentence >= 0, sentence=sentence)
    found = sentences_of(batch)
    assert found.owner.tolist() == [[-1, 0, 0, 1, -1], [0, 0, 1, 1, 2], [-1, -1, -1, -1, -1]]
    assert found.real.tolist() == [[True, True, False], [True, True, True], [False, False, False]]


def test_encoder_none_is_a_weighted_sum_of_embeddings() -> None:
    model = hierarchical(HIERARCHICAL[3], DOCUMENTS)
    batch = batch_of(model, DOCUMENTS)
    trace = model.trace(batch)
    both = (trace.attention[SENTENCE][:, 0] @ trace.attention[WORD][:, 0])[:, 0]  # [batch, token]
    context = (both[..., None] * model.embed(batch)).sum(1)
    assert torch.allclose(model.two_sided(model.decoder(context)), trace.logits, atol=1e-5)


def test_flat_is_a_classifier_with_the_same_encoders() -> None:
    kinds = [type(document_model(spec, DOCUMENTS).encoder) for spec in FLAT]
    assert kinds == [BiGRU, CNN, Identity]
    flat = document_model(FLAT[0], DOCUMENTS)
    assert type(flat) is Classifier
    bigru = document_model(f"bigru:{SMALL}", DOCUMENTS)
    bigru.load_state_dict(flat.state_dict())
    batch = batch_of(flat, DOCUMENTS)
    assert torch.equal(flat.trace(batch).logits, bigru.trace(batch).logits)
    convolution = make_classifier("flat:encoder=conv", vocabulary(DOCUMENTS), ("no", "yes")).encoder
    assert isinstance(convolution, CNN)
    assert [tuple(c.get_parameter("weight").shape) for c in convolution.convolutions] == [(50, 300, 3), (50, 300, 5)]
    plain = last_state(f"flat:{SMALL},encoder=none,attention=none", DOCUMENTS)
    mean = (plain.embed(batch) * batch.words[..., None]).sum(1) / batch.lengths[:, None]
    assert torch.allclose(plain.trace(batch).logits, plain.two_sided(plain.decoder(mean)), atol=1e-5)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("hierarchical:wrap=true", "no start and end symbols"),
        ("hierarchical:encoder=lstm", "rnn"),
        ("hierarchical:attention=none", "tanh"),
        ("hierarchical:projection=sparsegen", "lam"),
        ("hierarchial", "did you mean 'hierarchical'"),
        ("flat:encoders=rnn", "did you mean 'encoder'"),
    ],
)
def test_wrong_settings_are_one_sentence(spec: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        MODELS.make(spec)


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    task = small_task()
    model = build(HIERARCHICAL[2], task)
    save_checkpoint(tmp_path / "model", Checkpoint(model.eval(), "small", task.hash, 0, {}, {}))
    back = load_checkpoint(tmp_path / "model").model
    assert isinstance(back, Hierarchical)
    batch = collate(task.split("test"), model.vocabulary)
    assert torch.equal(back.trace(batch).logits, model.trace(batch).logits)


def test_its_parts_can_be_drawn_anew_one_by_one() -> None:
    model = hierarchical(HIERARCHICAL[0], DOCUMENTS)
    assert parts(model) == ("decoder", "scorer", "sentence_encoder", "word_scorer", "encoder", "embedding")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for part in parts(model):
        with randomise(model, (part,), 0):
            for name, tensor in model.state_dict().items():
                assert torch.equal(tensor, before[name]) != name.startswith(f"{part}."), (part, name)
    plain = hierarchical(HIERARCHICAL[3], DOCUMENTS)
    assert parts(plain) == ("decoder", "scorer", "word_scorer", "embedding")  # an identity has nothing to lose
    assert "elsewhere" in str(unshiftable(model))
    assert "no first layer" in str(unshiftable(document_model(FLAT[2], DOCUMENTS)))


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["rnn", "conv", "none"])
def test_it_learns(encoder: str) -> None:
    """Does a document speak of `a`? One sentence does, and the others say nothing of it."""
    examples = []
    for i, e in enumerate(documents(300, seed=3)):
        words = tuple(w for w in e.words if w != "a") or ("bu",)
        examples.append(Example(i, ((*words[:1], *("a",) * (i % 2), *words[1:]),), i % 2))
    splits = {"train": tuple(examples[:200]), "dev": tuple(examples[200:250]), "test": tuple(examples[250:])}
    task = Task("speaks", ("no", "yes"), splits, "made up")
    model = build(f"hierarchical:size=16,hidden=8,encoder={encoder}", task)
    Fit(model, task, TrainingSettings(epochs=12, lr=0.02), 0).run()
    assert (evaluate(model, task.split("test"))["accuracy"] or 0) > 0.9
