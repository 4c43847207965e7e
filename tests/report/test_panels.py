"""What panels share: colours and shapes of series."""

from typing import Any

from exegete.report.panels import series


def test_no_two_names_look_alike() -> None:
    """There are fewer colours than names; a colour that comes again has another shape."""
    names = [f"task {i}" for i in range(12)]
    channels: list[Any] = [channel.to_dict() for channel in series("task", names)]
    colour, shape = (channel["scale"]["range"] for channel in channels)
    assert len(set(colour)) < len(names)
    assert len(set(zip(colour, shape, strict=True))) == len(names)
