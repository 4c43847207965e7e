"""Registry: adapters that were wrapped in this process, by name; another process can't make them again."""

import copy
import hashlib
import inspect

from exegete.base.errors import ExegeteError
from exegete.models.own.adapter import OwnModel

_adapters: dict[str, OwnModel] = {}


def hold_adapter(own: OwnModel) -> str:
    """Keep an adapter as it is now, and the name that it has from now on: its class and a fingerprint."""
    digest = hashlib.sha256(f"{type(own).__module__}.{type(own).__qualname__}\0{_source(own)}".encode())
    for name, tensor in sorted(own.state_dict().items()):
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    name = f"{type(own).__name__}-{digest.hexdigest()[:12]}"
    _adapters[name] = copy.deepcopy(own)
    return name


def find_adapter(name: str) -> OwnModel:
    """An adapter that was wrapped here, as it was then."""
    if name not in _adapters:
        raise ExegeteError(
            f"the module of '{name}' was wrapped in another process and can't be made again here: wrap it once more, "
            "or write its adapter to a file and name it with own:file=…"
        )
    return copy.deepcopy(_adapters[name])


def _source(own: OwnModel) -> str:
    """The source of the adapter's class; nothing where it was typed in."""
    try:
        return inspect.getsource(type(own))
    except (OSError, TypeError):
        return ""
