"""Own classifier: the user's module, through its adapter, as a model like any other (exegete.models.own.adapter).

The file is named in the settings, and its fingerprint is part of the model's name from then on: `own:file=my_model.py`
becomes `own:file=my_model.py,hash=…`. So stages and checkpoints know which code they were made with.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.names import vary
from exegete.models.capabilities import Encoded
from exegete.models.contract import Intervention, Readout, Trace
from exegete.models.ours.classifier import own_places
from exegete.models.ours.module import KeptSites, Model, Projecting
from exegete.models.own.adapter import SITE, OwnModel, OwnPooling
from exegete.models.own.file import load_function, plain_code_errors, source_hash
from exegete.models.own.hook import Hook, View
from exegete.models.own.registry import find_adapter
from exegete.models.own.words import known_words, own_class_order
from exegete.models.projections import PROJECTIONS, Projection
from exegete.models.settings import MODELS, OwnSettings
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import SPECIAL, Vocabulary

SCALES, PROBES, LINEAR = (0.1, 1.0, 10.0, 100.0), 8, 1e-4  # sizes of contexts that a decoder is probed with


class Own(Model):
    """One text in, one class out, through a module that was written elsewhere."""

    settings: OwnSettings
    own: OwnModel
    rows: Tensor

    def __init__(self, spec: str, own: OwnModel, vocabulary: Vocabulary, labels: tuple[str, ...]) -> None:
        from exegete.models.own.check import check_own, probe

        known = known_words(own, vocabulary)
        super().__init__(spec, known.vocabulary, labels, 0)
        settings: OwnSettings = MODELS.make(spec)
        self.settings, self.own = settings, own
        self.project: Projection = PROJECTIONS[settings.projection].load()(**settings.projection_settings)
        self.register_buffer("rows", known.rows, persistent=False)  # [word]: the module's own row of every word
        self.order = own_class_order(own, labels)  # [class]: which of the module's logits is that of a class
        self._sites: tuple[str, ...] = ()
        self._query: Literal["only", "every"] = "only"
        with plain_code_errors(_where(settings)):
            batch = probe(self)
            self.size, trace = check_own(self, batch)
            self._sites = tuple(trace.attention)
            self._query = "only" if trace.attention[self._sites[-1]].shape[2] == 1 else "every"
            self._attention = self._deciding(batch)

    @property
    def who(self) -> str:
        """The adapter and its file, for sentences about them."""
        return f"{type(self.own).__name__} in {self.settings.file}" if self.settings.file else type(self.own).__name__

    @property
    def sites(self) -> tuple[str, ...]:
        """The names with which the module called `attend`, in this order."""
        return self._sites

    @property
    def readout(self) -> Readout:
        """The last attention that was called; where every token looks at every token, that of all of them."""
        return Readout(self.sites[-1:], self._query, self.gated)

    @property
    def as_it_is(self) -> bool:
        """Whether the module came trained."""
        return self.settings.trained

    @property
    def encoder(self) -> nn.Module:
        """All layers of the module, which has no parts that we know: they can only be drawn anew together."""
        return self.own

    @property
    def tables(self) -> tuple[nn.Embedding, ...]:
        """The embeddings of all words, as they are now."""
        with torch.no_grad():
            rows = self.own.embed(self.rows[:, None])[:, 0]  # every word as a text of its own
        return (nn.Embedding.from_pretrained(rows),)

    def looked_up(self, batch: Batch) -> Tensor:
        """[batch, token, size], by the module's own rows."""
        return self.own.embed(self.rows[batch.tokens])

    def _trace(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites) -> Trace:
        del keep
        view = View(batch)
        hook = Hook(view, self.project, intervene, self.who)
        seen = view.seen(self.embed(batch) if embedded is None else embedded)
        logits = self._run(seen, hook)
        owner = dict.fromkeys(hook.weights, own_places(batch))
        return Trace(self._ordered(logits), hook.weights, hook.states, owner)

    def unpooled(self) -> str:
        """Why its attention can't be rewritten after encoding."""
        return (
            f"it asks about the states that a last attention pools, and {self.who} doesn't say that it has "
            "one: make it an OwnPooling, if it has"
        )

    def _run(self, embedded: Tensor, hook: Hook) -> Tensor:
        """The module's forward."""
        logits: Tensor = self.own(embedded, hook.view.mask, hook)
        return logits

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """What decides the weights and nothing else: named by the adapter, or found; and the projection's."""
        yield from self._attention
        yield from self.project.parameters()

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """Every tensor once: a module may hold one under several names (tied weights), which files can't."""
        whole = super().state_dict(*args, **kwargs)
        first = _first_names(whole)
        return {name: tensor for name, tensor in whole.items() if first[name] == name}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Take every tensor under all the names that the module has for it."""
        first = _first_names(super().state_dict())
        whole = dict(state_dict) | {name: state_dict[one] for name, one in first.items() if one in state_dict}
        return super().load_state_dict(whole, strict, assign)

    def _ordered(self, logits: Tensor) -> Tensor:
        return logits if self.order is None else logits[..., self.order]

    def _deciding(self, batch: Batch) -> list[nn.Parameter]:  # noqa: ARG002
        """The parameters that decide the weights, as the adapter names them."""
        return [p for p in self.own.attention_parameters() if p.requires_grad]

    def _used(self, value: Tensor) -> set[int]:
        """The parameters that a value depends on, by identity."""
        trained = [p for p in self.own.parameters() if p.requires_grad]
        if not value.requires_grad or not trained:
            return set()
        slopes = torch.autograd.grad(value.sum(), trained, allow_unused=True, retain_graph=True)
        return {id(p) for p, slope in zip(trained, slopes, strict=True) if slope is not None}


class PooledOwn(Projecting, Own):
    """One whose attention pools the states of words for a decoder."""

    own: OwnPooling

    def _run(self, embedded: Tensor, hook: Hook) -> Tensor:
        """The forward of an OwnPooling; the states of the trace are those that are pooled: gradients reach them."""
        own, view = self.own, hook.view
        states = view.whole(own.states(embedded, view.mask))  # [batch, key, size]
        seen = view.seen(states)
        weights = hook(SITE, own.scores(seen, view.mask), seen)
        hook.states[SITE] = states
        return own.decode((weights[:, None] @ seen)[:, 0])

    def encode(self, batch: Batch, *, embedded: Tensor | None = None) -> Encoded:
        """States and scores, once; W h_t where the decoder was found to be linear."""
        own, view = self.own, View(batch)
        states = own.states(view.seen(self.embed(batch) if embedded is None else embedded), view.mask)
        scores = own.scores(states, view.mask)
        values = self._decoded(states) - self._bias(states) if self.is_linear(states.shape[-1]) else None
        whole = None if values is None else view.whole(values)
        return Encoded(view.whole(states), view.whole(scores), batch.words, whole)

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """Logits [batch, draw, class] for every draw of weights, in the precision of the states."""
        dtype = encoded.states.dtype
        if encoded.values is not None:
            return weights.to(dtype) @ encoded.values + self._bias(encoded.states).to(dtype)
        context = weights.to(dtype) @ encoded.states  # [batch, draw, size]
        return self._decoded(context.to(self.dtype)).to(dtype)  # the module computes in its own precision

    def _decoded(self, context: Tensor) -> Tensor:
        """Logits of contexts of any leading shape: the adapter sees [batch, size]."""
        flat = self.own.decode(context.reshape(-1, context.shape[-1]))
        return self._ordered(flat).reshape(*context.shape[:-1], -1)

    def _bias(self, states: Tensor) -> Tensor:
        """What the decoder gives to no states at all: [class]."""
        return self._decoded(states.new_zeros(1, states.shape[-1], dtype=self.dtype))[0]

    @torch.no_grad()
    def is_linear(self, size: int) -> bool:
        """Whether f(x + y) = f(x) + f(y) − f(0) for contexts x, y of every size: then logits are Σ_t α_t (W h_t) + b.

        The contexts are normal numbers, with signs of both kinds, so that no ReLU, tanh or norm hides. It is asked of
        the weights as they are: a decoder that starts at 0 is linear only until it is trained.
        """
        draw = torch.Generator("cpu").manual_seed(0)
        x, y = (torch.randn(PROBES, size, generator=draw, device="cpu").to(self.device, self.dtype) for _ in range(2))
        with resting(self):
            for scale in SCALES:
                both, one, other = (self._decoded(scale * each) for each in (x + y, x, y))
                off = (both - one - other + self._bias(x)).abs().max()
                if not bool(off <= LINEAR * (one.abs().max() + other.abs().max())):
                    return False
        return True

    def _deciding(self, batch: Batch) -> list[nn.Parameter]:
        """Those that are named, or that scores depend on when states are given, but neither states nor logits do."""
        named = super()._deciding(batch)
        if named:
            return named
        own, view = self.own, View(batch)
        with resting(self), torch.enable_grad():
            states = own.states(view.seen(self.embed(batch)), view.mask)
            free = states.detach()
            scores, logits = own.scores(free, view.mask), own.decode(free[:, 0])
            alone = self._used(scores) - self._used(states) - self._used(logits)
        return [p for p in self.own.parameters() if id(p) in alone]


def own_model(spec: str, vocabulary: Vocabulary, labels: tuple[str, ...], size: int | None = None) -> Own:
    """The model that a file's adapter makes; the file's fingerprint is part of its name from then on."""
    del size  # the module knows
    settings: OwnSettings = MODELS.make(spec)
    found = source_hash(settings.file) if settings.file else settings.wrapped.rpartition("-")[2]
    if settings.hash not in (None, found):
        raise ExegeteError(
            f"{settings.file} has changed since this model was made with it (its hash was {settings.hash} and is "
            f"{found}): put the file back as it was, or train the model again"
        )
    own = _made(settings, (*SPECIAL, *vocabulary.words), labels)
    if not labels and not own.labels:
        raise UsageError(
            f"the texts have no labels, and {type(own).__name__} doesn't name its classes: give its `labels`"
        )
    labels = labels or tuple(str(label) for label in own.labels or ())
    return (PooledOwn if isinstance(own, OwnPooling) else Own)(vary(spec, hash=found), own, vocabulary, labels)


@contextmanager
def resting(model: nn.Module) -> Iterator[None]:
    """Inside, a model doesn't drop anything out; afterwards all of it is in the mode that it was in."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def _made(settings: OwnSettings, words: tuple[str, ...], labels: tuple[str, ...]) -> OwnModel:
    """What the file's function makes, or what was wrapped."""
    if settings.wrapped:
        return find_adapter(settings.wrapped)
    make = load_function(settings.file, settings.make)
    with plain_code_errors(_where(settings)):
        own = make(words, labels)
    if not isinstance(own, OwnModel):
        raise UsageError(
            f"{settings.make}(words, labels) of {settings.file} returns {type(own).__name__}: return an adapter, a "
            "subclass of exegete.OwnPooling or exegete.OwnModel"
        )
    return own


def _where(settings: OwnSettings) -> Path:
    """The file that errors are about; of what was wrapped, its name."""
    return Path(settings.file).expanduser().resolve() if settings.file else Path(settings.wrapped)


def _first_names(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """By name of a tensor, the first name of the same one."""
    first: dict[tuple[object, ...], str] = {}
    found = {}
    for name, tensor in tensors.items():
        same = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype) if tensor.numel() else (name,)
        found[name] = first.setdefault(same, name)
    return found
