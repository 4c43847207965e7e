"""LRP where the answer is known: whole models in plain Python, by hand, and decompositions as ε goes to 0."""

import pytest
import torch

from exegete.importance.contract import Target
from exegete.importance.gradient import Gradient
from exegete.importance.lrp import Lrp, relevance
from exegete.importance.relevance import Dials
from exegete.models.ours.classifier import SITE, Classifier
from exegete.models.ours.encoders import Average
from exegete.tasks.example import Example
from tests.importance import slow_lrp
from tests.importance.test_lrp import without_biases
from tests.small import batch_of, small_classifier, texts, vocabulary


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize(
    "spec",
    [
        "bilstm:size=3,hidden=2,scale=1",
        "bigru:size=3,hidden=2,scale=1,outputs=classes",
        "average:size=3,hidden=4,scale=1",
        "average:size=3,hidden=4,scale=1,activation=relu",
        "cnn:size=3,hidden=4,scale=1,outputs=classes",
    ],
)
def test_whole_models_against_plain_python(spec: str, wrap: bool, bias: bool) -> None:
    examples = [Example(0, (("a",),), 0), *texts(2, longest=5)]
    model = small_classifier(spec, examples, wrap)
    for label, e in enumerate(examples):
        batch, target = batch_of(model, [e]), Target(torch.tensor([label % 2]))
        found = relevance(model, batch, target, Dials(0.01, bias))
        tokens, absorbed, logit = slow_lrp.relevance(model, batch, label % 2, epsilon=0.01, delta=float(bias))
        assert found.tokens[0].tolist() == pytest.approx(tokens, rel=1e-6, abs=1e-9)
        assert found.initial[0].tolist() == pytest.approx(absorbed, rel=1e-6, abs=1e-9)
        assert found.logit.item() == pytest.approx(logit, abs=1e-9)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_single_words_get_what_they_add_to_the_logit_as_epsilon_goes_to_zero(activation: str) -> None:
    """Without a decoder bias, logit = Σ_t α_t (w · h_t); LRP's word t has exactly its summand, α as a gate."""
    examples = texts(12)
    model = small_classifier(f"average:size=5,hidden=4,scale=1,activation={activation},outputs=classes", examples)
    with torch.no_grad():
        model.decoder.bias.zero_()
    batch = batch_of(model, examples)
    trace = model.trace(batch)
    c = trace.logits.argmax(-1)
    summands = trace.attention[SITE][:, 0, 0] * (trace.states[SITE] * model.decoder.weight[c][:, None]).sum(-1)
    near, far = (Lrp(epsilon)(model, batch).values for epsilon in (1e-9, 0.1))
    assert torch.allclose(near[batch.words], summands[batch.words].double(), atol=1e-5)
    assert (far[batch.words] - summands[batch.words]).abs().max() > 1e-2  # a large ε is seen


@pytest.mark.parametrize("spec", ["average:size=5,hidden=4,activation=relu", "cnn:size=5,hidden=8"])
def test_a_linear_model_gets_gradient_times_input_as_epsilon_goes_to_zero(spec: str) -> None:
    """All numbers positive and no bias: no ReLU bends, and the logit is linear in the embeddings at fixed attention."""
    model = without_biases(f"{spec},scale=1,outputs=classes")
    with torch.no_grad():
        for parameter in (*model.encoder.parameters(), model.embedding.weight, model.decoder.weight):
            parameter.abs_()
    batch = batch_of(model, texts(12))
    expected = Gradient(detach=True)(model, batch).values  # absolute, and all of it is positive here
    assert torch.allclose(Lrp(1e-9)(model, batch).values.float(), expected, rtol=1e-4, equal_nan=True)


def test_by_hand() -> None:
    """One word: e = (1, 2), P = (1, 1), h = relu(3 − 1) = 2, z = 3·2 + 1 = 7, logit of class 1 = 3.5."""
    model = Classifier("average:size=2,hidden=1,activation=relu,attention=dot", vocabulary(texts(3)), ("no", "yes"))
    assert isinstance(model.encoder, Average)
    with torch.no_grad():
        model.embedding.weight[model.vocabulary.index["a"]] = torch.tensor([1.0, 2.0])
        for layer, weight, bias in ((model.encoder.linear, 1.0, -1.0), (model.decoder, 3.0, 1.0)):
            layer.weight.fill_(weight)
            layer.bias.fill_(bias)
    batch = batch_of(model, [Example(0, (("a",),), 0)])
    for label, logit in ((1, 3.5), (0, -3.5)):
        scores = Lrp()(model, batch, Target(torch.tensor([label])))
        assert scores.values.tolist() == [[pytest.approx(logit)]]  # a single word gets all
    # Without the bias: 3/(3.5 + ε) of 3.5 arrives at the state, then (3 + ε)/(2 + ε), the word more than the state.
    kept = (3 + 0.001) / 3.501 * 3.5 * (3 + 0.001) / 2.001
    assert Lrp(bias=False)(model, batch).values.item() == pytest.approx(kept)
