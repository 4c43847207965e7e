"""A pair of texts layer by layer: a logit's relevance goes back through the decoder to both (Arras et al. 2017).

The decoder's first layer is one linear layer over context and question. The context's part goes to the passage, with
attention as gates; the question's part goes to the question: through the last states of a recurrent encoder, to the
words of a mean as a pool with equal weights, to the word that wins a maximum. With conditional encoding what the
question's encoder hands down to its start goes on into the passage.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from exegete.models.capabilities import Layered, LayersByKind
from exegete.models.ours.encoder_layers import LayeredText, LayerMemory, in_double, read_by, weight_and_bias
from exegete.models.ours.encoders import CNN, Average, Identity
from exegete.models.ours.parts import PASSAGE, QUESTION, TextPart, part_of
from exegete.tasks.batching import Batch

if TYPE_CHECKING:
    from exegete.models.ours.pair import Pair


def run_pair(model: "Pair", texts: Batch, x: Tensor, layers: LayersByKind) -> Layered:
    """Logits [batch, class] from embeddings [batch, token, size], and the initial states of the encoders."""
    passage, question = part_of(texts, PASSAGE), part_of(texts, QUESTION)
    read = _read(model, model.encoder, x, passage, layers, ())
    start = read.end if model.settings.encoding == "conditional" else ()
    asked = _read(model, model.question_encoder, x, question, layers, start)
    query = _summed_up(model, asked, question, layers)
    weights = in_double(model.project, in_double(model.scorer, read.states.detach(), query.detach()), passage.words)
    context = layers("pool", read.states, weights, passage.words)  # [batch, size]
    inner = layers("tanh", _inner(model, context, query, layers))
    logits = layers("linear", inner, *weight_and_bias(model.decoder.outer)) + 0 * x.sum()  # of x, even without a word
    return Layered(model.among(logits, texts.candidates), (*read.initial, *asked.initial))


def _inner(model: "Pair", context: Tensor, query: Tensor, layers: LayersByKind) -> Tensor:
    """What is inside tanh: W_p c + W_q q as one linear layer over both, or W_p c."""
    weight, bias = weight_and_bias(model.decoder.context)
    if model.decoder.question is None:
        return layers("linear", context, weight, bias)
    other, more = weight_and_bias(model.decoder.question)
    gate = context.new_ones(len(context), len(bias))
    return layers("joined", context, weight, query, other, gate, bias + more)


def _read(
    model: "Pair", encoder: torch.nn.Module, x: Tensor, part: TextPart, layers: LayersByKind, start: LayerMemory
) -> LayeredText:
    """A text as its encoder reads it; one without any token has no states and hands over zeros."""
    if part.present.any():
        return read_by(encoder, part.take(x), layers, *((start,) if start else ()))
    count, size = len(x), model.encoder.out
    memories = {"bilstm": 2, "bigru": 1}.get(model.settings.encoder, 0)
    zeros = tuple(x.new_zeros(2, count, size // 2).requires_grad_() for _ in range(memories))
    return LayeredText(x.new_zeros(count, 1, size), () if start else zeros, zeros)


def _summed_up(model: "Pair", read: LayeredText, part: TextPart, layers: LayersByKind) -> Tensor:
    """The question as a whole, [batch, size], as `exegete.models.ours.encoders.summarise_text` has it."""
    if isinstance(model.question_encoder, Average | Identity):
        equal = part.words / part.words.sum(-1, keepdim=True).clamp(min=1).double()
        return layers("pool", read.states, equal, part.words)
    if isinstance(model.question_encoder, CNN):
        best = read.states.masked_fill(~part.words[..., None], -1.0).argmax(1, keepdim=True)  # states are ≥ 0
        return read.states.gather(1, best)[:, 0] * part.words.any(-1, keepdim=True)
    present = part.present.any(-1, keepdim=True)
    return torch.cat(read.end[0].unbind(0), -1) * present
