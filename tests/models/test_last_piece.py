"""Of a causal classifier the last piece predicts, whatever word it belongs to: that row is read, cut and rewritten."""

import pytest
import torch

from exegete.experiments.readings.cuts import Cuts
from exegete.importance.reading import Reading
from exegete.interventions.cut import Cut
from exegete.models.contract import Site
from exegete.models.huggingface.model import HuggingFace
from exegete.models.openings import opened
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from tests.models.architectures import classifier

TEXTS = ("a bad movie", "a movie so unbelievably terrific", "charming zzyzx")


@pytest.fixture(scope="module", params=("llama", "gpt2", "bloom"))
def model(request: pytest.FixtureRequest) -> HuggingFace:
    """The symbols at its end are left out: the last piece is one of a word's."""
    found = classifier(request.param)
    assert found.query == "last"
    return found


def test_the_row_that_is_read_is_the_row_that_predicts(model: HuggingFace) -> None:
    for text in TEXTS:
        batch = without_end(model, text)
        assert int(batch.cost[batch.present][-1]) > 1 or text == TEXTS[0]
        with torch.no_grad():
            assert model.readout is not None
            read, own = model.trace(batch).read(model.readout), opened(model, batch).weights
        assert torch.allclose(read.double(), own, atol=1e-6)


def test_edges_are_cut_from_the_piece_that_predicts(model: HuggingFace) -> None:
    """At the last layer, what nobody reads costs nothing: from this piece alone or from all, the loss is the same."""
    batch, last = without_end(model, TEXTS[1]), model.sites[-1:]
    word = batch.words & (batch.words.cumsum(-1) == 2)
    touched: list[int] = []

    def counted(site: Site) -> torch.Tensor:
        rewritten = cut(site)
        touched.append(int((rewritten != site.weights).any(-1).any(1).sum()))
        return rewritten

    with torch.no_grad():
        everybody = model.logits(batch, intervene=Cut(word, last))
        cut = Cut(word, last, model.readout)
        one = model.logits(batch, intervene=counted)
        cuts = Cuts(model, [Reading()])
        whole, found = cuts(model, batch, word)
    assert touched[-1] == 1
    assert torch.allclose(one, everybody, atol=1e-5)
    assert torch.allclose(found[0].float(), everybody, atol=1e-5)
    assert float((one - whole).abs().max()) > 1e-4


def without_end(model: HuggingFace, text: str) -> Batch:
    """A batch whose last token is a word: the tokenizer of these tests puts a symbol behind it."""
    batch = model.collate([Example(0, (tuple(text.split()),), 0)])
    end = batch.tokens.shape[1] - 1
    return batch.rows(torch.tensor([0]), end)
