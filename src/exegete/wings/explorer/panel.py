"""Panel: what `exegete.lab` gives, a text opened at a site: shown in a notebook as it is, or live, as the page has it.

Live, the page of `exegete serve` is served by a thread of this process, which only pages of this machine may frame; its
workers load the model once more. What no folder has, a model in memory, is written to one that ends with the panel.
"""

import atexit
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlencode

from exegete.plugins import (
    Checkpoint,
    ExegeteError,
    HeatMap,
    HeatRow,
    TextInput,
    block,
    fill_template,
    save_checkpoint,
    text_parts,
)
from exegete.plugins import (
    ModelGiven as Model,
)
from exegete.wings.explorer.attack import Attack
from exegete.wings.explorer.lab import Lab, open_lab

TALL = 900  # pixels of a frame
# A notebook has an address of its own on this machine. `localhost` has one cookie for all ports, `127.0.0.1` another.
FRAMES = "http://localhost:* http://127.0.0.1:* https://localhost:*"
HOST = "localhost"


@dataclass(frozen=True)
class Panel(Attack):
    """A text of which only the weights of one site are left to choose, to be shown in a notebook."""

    source: Model
    text: TextInput
    step: int = 1

    def live(self, height: int = TALL) -> "Live":
        """The page with this text and site, in the notebook: bars to drag, and the prediction follows."""
        missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
        if missing:
            raise ExegeteError(f"a live panel needs {' and '.join(missing)}: pip install fastapi uvicorn")
        return Live(self.source, self.text, self.site, height, self.step)

    def _repr_html_(self) -> str:
        """The model's own weights as a heat map, without a server: a row for every head, the mean over its queries."""
        heads = self.own.unflatten(0, (-1, self.queries)).mean(1)
        named = [self.site] if len(heads) == 1 else [f"{self.site}, head {n + 1}" for n in range(len(heads))]
        rows = [
            HeatRow(name, tuple(weights.tolist()), signed=False) for name, weights in zip(named, heads, strict=True)
        ]
        title = f"Predicted: {', '.join(f'{label} {p:.3f}' for label, p in self.likeliest.items())}."
        return str(block(HeatMap(title, tuple(self.keys), tuple(rows), toward=self.site)))


class Live:
    """A server of its own for one model, until `close` or the end of this process."""

    def __init__(self, source: Model, text: TextInput, site: str, height: int = TALL, step: int = 1) -> None:
        from exegete.wings.explorer.start import Background  # which needs fastapi

        self._folder: TemporaryDirectory[str] | None = None
        if isinstance(source, Checkpoint):
            self._folder = TemporaryDirectory(prefix="exegete-")
            folder = Path(self._folder.name) / "model"
            save_checkpoint(folder, source)
            source = folder
        self.height, self._fragment = height, _fragment(text, site, step)
        self._server = Background([None if source is None else str(source)], frames=FRAMES)
        atexit.register(self.close)

    @property
    def address(self) -> str:
        """Where the page is; it has the token."""
        door = self._server.door
        return f"http://{HOST}:{door.port}/?token={door.token}#{self._fragment}"

    def close(self) -> None:
        """End the server and its workers; a second time does nothing."""
        atexit.unregister(self.close)
        self._server.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _repr_html_(self) -> str:
        return str(fill_template("wings/explorer/templates/panel.html", address=self.address, height=self.height))


def _fragment(text: TextInput, site: str, step: int) -> str:
    """What the page restores from its address."""
    parts = dict(zip(("text", "question"), text_parts(text), strict=False))
    return urlencode(parts | {"site.0": site} | ({"step.0": str(step)} if step > 1 else {}), quote_via=quote)


def panel(model: Model, text: TextInput, site: str | None = None, step: int = 1) -> Panel:
    """A text opened at a site of a model, the readout unless one is named; of a translator, one word of its output."""
    kept: Lab = open_lab(model)
    found = kept.attack(text, site, step)
    opened = {field.name: getattr(found, field.name) for field in fields(found)}
    return Panel(**opened, source=model, text=text, step=step)
