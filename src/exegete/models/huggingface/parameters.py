"""Parameters of transformers' models by what they do: those that decide weights, and those of the lowest layers."""

from collections.abc import Iterator

from torch import nn

from exegete.base.errors import UsageError
from exegete.models.huggingface.sites import Access

# What architectures call the maps of queries and keys; where one map makes values, too, nothing decides weights alone.
DECIDING = frozenset(
    ("query", "key", "q_lin", "k_lin", "q_proj", "k_proj", "query_proj", "key_proj", "q", "k", "pos_key", "pos_query")
)


def attention_parameters(base: nn.Module, access: Access) -> Iterator[nn.Parameter]:
    """Those of queries and keys at every site."""
    for path in access.names:
        for name, part in base.get_submodule(path).named_children():
            if name in DECIDING:
                yield from (p for p in part.parameters() if p.requires_grad)


def freeze(base: nn.Module, access: Access, layers: int) -> None:
    """Keep the lowest layers, and all that comes before the first (embeddings), from being trained."""
    if not layers:
        return
    found = layers_of(access)
    if layers >= len(found):
        said = (
            "whose layers share their weights" if len(access.names) < len(access.sites) else f"of {len(found)} layers"
        )
        raise UsageError(f"frozen={layers} leaves nothing to train of a model {said}: freeze fewer")
    still = tuple(f"{path}." for path in found[:layers])
    reached = False
    for name, parameter in base.named_parameters():
        reached = reached or name.startswith(f"{found[0]}.")
        if not reached or name.startswith(still):
            parameter.requires_grad_(False)


def layers_of(access: Access) -> list[str]:
    """Paths of the layers, from the words up: where an attention lies, up to the layer's number."""
    return list(dict.fromkeys(_layer(path) for path in access.names))


def _layer(path: str) -> str:
    parts = path.split(".")
    numbered = [place for place, part in enumerate(parts) if part.isdigit()]
    return ".".join(parts[: numbered[0] + 1]) if numbered else path
