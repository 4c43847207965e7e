"""Guard: who may ask, from where, how often and how much; everything else is refused with a sentence.

A token made anew at every start opens the page once, and becomes a cookie that scripts can't read and other sites can't
send. A browser sends a cookie to every port of a host: ours belongs to a path that only this start has, so that other
servers of the same machine never see it. Host and Origin are checked, so that a page elsewhere that gives itself our
address (DNS rebinding) gets nothing.
"""

import asyncio
import hmac
import ipaddress
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
CLIENT = "exegete.client"  # where a request's scope says who asks

BODY = 1 << 20  # bytes of a request
PATIENCE = 10.0  # seconds that a body may take
RATE, BURST = 100.0, 300.0  # questions a second, and how many at once, of one client
CLIENTS = 1_024  # that are remembered
NOBODY = "'none'"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src-elem 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors {frames}"
)
HEADERS = {
    "content-security-policy": POLICY.format(frames=NOBODY),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
NO_TOKEN = "open the address that `exegete serve` printed: it has the token of this start"
NOTHING = "there is nothing here: open the address that `exegete serve` printed"
NOT_HERE = "this server answers only to its own address, as `exegete serve` printed it"
NOT_OURS = "this request comes from another site, and only our own page may ask"
TOO_MUCH = f"a request has at most {BODY >> 20} MB: shorten the text"
TOO_OFTEN = "too many questions at a time: wait a second"
TOO_SLOW = "the request did not arrive in time: send it again"


class Refused(Exception):  # noqa: N818
    """A status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


@dataclass
class Buckets:
    """How many questions each client has left; so many a second come back."""

    rate: float = RATE
    burst: float = BURST
    _left: "OrderedDict[str, tuple[float, float]]" = field(default_factory=OrderedDict)

    def take(self, client: str) -> None:
        """One question; refused where none is left."""
        now = time.monotonic()
        left, then = self._left.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.rate)
        self._left[client] = (max(0.0, left - 1), now)
        if len(self._left) > CLIENTS:
            self._left.popitem(last=False)
        if left < 1:
            raise Refused(429, TOO_OFTEN)


@dataclass(frozen=True)
class Door:
    """What opens the page, and under which addresses."""

    port: int
    names: frozenset[str] = frozenset({"127.0.0.1", "localhost", "[::1]"})
    any_number: bool = False  # any address in numbers is ours: the server listens on all of them
    frames: str = NOBODY  # whose pages may show ours within them, as a policy says it
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    path: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(12)}")  # below which everything is

    @property
    def cookie(self) -> str:
        """Its name: other servers of this machine have theirs."""
        return f"exegete-{self.port}"

    def ours(self, host: str) -> bool:
        """Whether a Host is one of our addresses; a name that we don't know may be somebody's trick."""
        name, _, port = host.rpartition(":")
        if port != str(self.port):
            return False
        return name in self.names or (self.any_number and _number(name.strip("[]")))

    def session(self) -> str:
        """A cookie's value: a random name, signed."""
        name = secrets.token_urlsafe(12)
        return f"{name}.{self._signature(name)}"

    def client(self, cookies: str) -> str | None:
        """Whose cookie it is, if it is one of ours."""
        try:
            kept = SimpleCookie(cookies).get(self.cookie)
        except CookieError:
            return None
        name, _, signature = ("" if kept is None else kept.value).partition(".")
        return name if hmac.compare_digest(signature.encode(), self._signature(name).encode()) else None

    def knows(self, token: str) -> bool:
        """Whether this is the token; how long the comparison takes tells nothing."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def _signature(self, name: str) -> str:
        return hmac.new(self.key, name.encode(), "sha256").hexdigest()


def _number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """Stands before the app."""

    def __init__(self, app: App, door: Door, buckets: Buckets | None = None) -> None:
        self.app, self.door, self.buckets = app, door, buckets or Buckets()
        self.headers = HEADERS | {"content-security-policy": POLICY.format(frames=door.frames)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, with a bounded body in and our headers out."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        try:
            headers = _headers(scope["headers"])
            self._check_place(headers)
            if (session := self._entering(scope)) is not None:
                await _answer(send, 303, b"", {"location": f"{self.door.path}/", "set-cookie": session} | self.headers)
                return
            client = self._check_client(scope, headers)
            inside = self._inside(scope)
            body = await _whole(headers, receive) if scope["method"] not in ("GET", "HEAD") else None
        except Refused as refused:
            await _refuse(scope["path"].removeprefix(self.door.path), send, refused, self.headers)
            return
        scope = {**scope, "path": inside, "raw_path": inside.encode(), CLIENT: client}
        await self.app(scope, receive if body is None else _given(body, receive), _with_headers(send, self.headers))

    def _check_place(self, headers: dict[str, str]) -> None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self.door.ours(host):
            raise Refused(403, NOT_HERE)
        if origin is not None and origin != f"http://{host}":
            raise Refused(403, NOT_OURS)
        navigates = headers.get("sec-fetch-mode") == "navigate"  # a link from elsewhere; our cookie stays behind
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not navigates:
            raise Refused(403, NOT_OURS)

    def _entering(self, scope: Scope) -> str | None:
        """The cookie of somebody who comes with the token; None for somebody without one."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if scope["path"] != "/" or scope["method"] != "GET" or given is None:
            return None
        self.buckets.take(_address(scope))
        if not self.door.knows(given[0]):
            raise Refused(401, NO_TOKEN)
        return f"{self.door.cookie}={self.door.session()}; HttpOnly; SameSite=Strict; Path={self.door.path}/"

    def _inside(self, scope: Scope) -> str:
        """The path below that of this start."""
        path: str = scope["path"]
        if not path.startswith(f"{self.door.path}/"):
            raise Refused(404, NOTHING)
        return path.removeprefix(self.door.path)

    def _check_client(self, scope: Scope, headers: dict[str, str]) -> str:
        """Who it is: somebody with a cookie of ours."""
        client = self.door.client(headers.get("cookie", ""))
        self.buckets.take(client or _address(scope))
        if client is None:
            raise Refused(401, NO_TOKEN)
        return client


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}


def _address(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else "nobody"


async def _whole(headers: dict[str, str], receive: Receive) -> bytes:
    """A body that is neither too long nor too slow."""
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > BODY:
        raise Refused(413, TOO_MUCH)
    try:
        async with asyncio.timeout(PATIENCE):
            return await _joined(receive)
    except TimeoutError:
        raise Refused(408, TOO_SLOW) from None


async def _joined(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message["type"] == "http.request" and message.get("more_body", False)
        if len(body) > BODY:
            raise Refused(413, TOO_MUCH)
    return body


def _given(body: bytes, receive: Receive) -> Receive:
    """A body that was read already; after it, whatever else happens."""
    left = [body]

    async def again() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return again


def _with_headers(send: Send, headers: dict[str, str]) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message["headers"]}  # a document with a stricter policy keeps it
            message["headers"] = [*message["headers"], *(each for each in _encoded(headers) if each[0] not in own)]
        await send(message)

    return sending


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


async def _refuse(path: str, send: Send, refused: Refused, headers: dict[str, str]) -> None:
    """A sentence, as JSON for the page and as text for a person."""
    if path.startswith("/api"):
        body, kind = json.dumps({"error": refused.sentence}).encode(), "application/json"
    else:
        body, kind = refused.sentence.encode(), "text/plain; charset=utf-8"
    await _answer(send, refused.status, body, {"content-type": kind} | headers)


async def _answer(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    start = {"type": "http.response.start", "status": status, "headers": _encoded(headers)}
    await send(start)
    await send({"type": "http.response.body", "body": body})
