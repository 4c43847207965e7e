"""Headers: a request whose headers don't end is answered with a sentence, and its connection is closed.

A client that sends a byte now and then would keep a connection for ever, and all of them together every connection
that the server has (slowloris). Bodies have a limit of their own, in `guard`.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 10.0  # seconds from the first byte of a request, or from the connection, to the end of its headers
TOO_SLOW = b"the headers of the request did not arrive in time: send it again"
ANSWER = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(TOO_SLOW), TOO_SLOW)
)


class TimedHeaders(H11Protocol):
    """HTTP as uvicorn speaks it, with a watch that runs while headers are awaited."""

    _watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The watch starts."""
        super().connection_made(transport)
        self._start()

    def data_received(self, data: bytes) -> None:
        """It stops where headers are complete, and starts with the first byte of the next request."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop()
        elif self._watch is None and (before is None or before.response_complete):
            self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        self._stop()
        super().connection_lost(exc)

    def _start(self) -> None:
        self._watch = self.loop.call_later(PATIENCE, self._give_up)

    def _stop(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(ANSWER)
            self.transport.close()
