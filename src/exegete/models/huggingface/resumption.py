"""Resumption: other weights at a site change nothing below it, so a pass may start from what is known there.

One pass over a batch is recorded: what every layer gave that ended before the site was reached. In a resumed pass these
layers compute nothing and give that again, for whichever texts of the batch are asked about, as often as they are. The
rest of the model runs as it always does, so that nothing has to be known of its architecture: what is no layer (look-up
of embeddings, masks, heads) is computed anew. Names of sites go on from where the recording was.

The proof at load (`proof`) compares both; a model that computes something else when it is resumed is run whole, and so
is one that is being trained, whose dropout differs from pass to pass.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor, nn

from exegete.models.contract import Intervention
from exegete.models.huggingface.attention import AttentionPass
from exegete.models.huggingface.sites import Access
from exegete.models.spelling import SpelledRows
from exegete.tasks.batching import Batch

if TYPE_CHECKING:
    from exegete.models.huggingface.model import HuggingFace

Forward = Callable[..., Any]


class Below(NamedTuple):
    """What the layers below a site made of a batch."""

    outputs: dict[str, list[Any]]  # by path of a layer: of its calls that ended before the site, in their order
    calls: Counter[int]  # attention that was computed by then, by id(module)


@dataclass(frozen=True)
class BegunPass:
    """A batch of words, run up to a site."""

    model: "HuggingFace"
    batch: Batch
    pieces: SpelledRows
    below: Below
    one_query: bool = False

    def logits(self, rows: Tensor, intervene: Intervention) -> Tensor:
        """Of some of its texts, [row], under an intervention that acts from the site on: [row, class]."""
        batch, pieces = self.batch.rows(rows), self.pieces.rows(rows)

        def around(run: AttentionPass) -> AbstractContextManager[Any]:
            return resuming(self.model.base, run, self.below, rows, len(self.batch.ids))

        return self.model.told(self.model.run(batch, pieces, intervene, around=around), batch, intervene).logits


@contextmanager
def recording(
    base: nn.Module,
    layers: Sequence[str],
    run: AttentionPass,
    access: Access,
    site: str,
    kept: Callable[[Tensor], Tensor] = Tensor.detach,
) -> Iterator[Below]:
    """Inside, what layers give in a run is recorded, up to a site, or what is to be kept of it.

    A site that is not in `base` is above all layers.
    """
    below = Below(defaultdict(list), Counter())
    at = {name: (path, number) for path, names in access.names.items() for number, name in enumerate(names)}
    path, number = at.get(site, ("", 0))
    owner = id(base.get_submodule(path)) if path else 0

    def remembering(layer: str, forward: Forward) -> Forward:
        def answer(*arguments: Any, **more: Any) -> Any:
            found = forward(*arguments, **more)
            if run.calls[owner] <= number:  # not reached yet
                below.outputs[layer].append(each(found, kept))
                below.calls.clear()
                below.calls.update(run.calls)
            return found

        return answer

    with ExitStack() as stack:
        for layer in layers:
            module = base.get_submodule(layer)
            stack.enter_context(_calling(module, remembering(layer, module.forward)))
        yield below


@contextmanager
def resuming(base: nn.Module, run: AttentionPass, below: Below, rows: Tensor, texts: int) -> Iterator[None]:
    """Inside, layers give what was recorded of some of the texts, [row], of a batch of so many."""

    def chosen(tensor: Tensor) -> Tensor:
        return tensor[rows] if tensor.dim() and tensor.shape[0] == texts else tensor

    run.calls.update(below.calls)
    with ExitStack() as stack:
        for path, outputs in below.outputs.items():
            layer = base.get_submodule(path)
            known = iter([each(found, chosen) for found in outputs])
            stack.enter_context(_calling(layer, _giving(known, layer.forward)))
        yield


def _giving(known: Iterator[Any], forward: Forward) -> Forward:
    """What is known of a layer's first calls; all further ones are computed (ALBERT's layers are one module)."""

    def answer(*arguments: Any, **more: Any) -> Any:
        for found in known:
            return found
        return forward(*arguments, **more)

    return answer


@contextmanager
def _calling(layer: nn.Module, forward: Forward) -> Iterator[None]:
    """Inside, a layer is this function: some are called past their hooks (SqueezeBERT)."""
    patched = layer.__dict__.get("forward")
    layer.forward = forward
    try:
        yield
    finally:
        del layer.forward
        if patched is not None:
            layer.forward = patched


def each(found: Any, change: Any) -> Any:
    """Every tensor of what a layer gives, changed; all else as it is."""
    if isinstance(found, Tensor):
        return change(found)
    if isinstance(found, Mapping):
        return type(found)({name: each(value, change) for name, value in found.items()})  # type: ignore[call-arg]
    if isinstance(found, tuple | list):
        values = [each(value, change) for value in found]
        return type(found)(*values) if hasattr(found, "_fields") else type(found)(values)
    return found
