"""What is refused, each with a sentence, and the server lives on."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from exegete.base.errors import ExegeteError, UsageError
from exegete.wings.explorer import guard, headers
from exegete.wings.explorer.guard import BODY, CLIENTS, HEADERS, Buckets, Door, Guard, Refused
from exegete.wings.explorer.start import bind_socket, check_source, door_of, loopback
from exegete.wings.explorer.worker_answers import without_paths
from tests.answers.explained_model import TEXT
from tests.wings.explorer.serving import Running, running, until

PORT = 8077
ORIGIN = f"http://127.0.0.1:{PORT}"


def hello() -> dict[str, str]:
    return {"said": "hello"}


def echo(asked: dict[str, Any]) -> dict[str, Any]:
    return asked


@pytest.fixture
def door() -> Door:
    return Door(PORT)


class Visitor:
    """A browser without a network: it keeps its cookies, and asks below a path."""

    def __init__(self, app: Any, path: str) -> None:
        self.app, self.path, self.cookies = app, path, httpx.Cookies()

    def get(self, path: str, **asked: Any) -> httpx.Response:
        return self.ask("GET", path, **asked)

    def post(self, path: str, **asked: Any) -> httpx.Response:
        return self.ask("POST", path, **asked)

    def ask(self, method: str, path: str, **asked: Any) -> httpx.Response:
        async def asking() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url=f"{ORIGIN}{self.path}", cookies=self.cookies
            ) as client:
                answer = await client.request(method, path, **asked)
                self.cookies = client.cookies
                return answer

        return asyncio.run(asking())


@pytest.fixture
def client(door: Door) -> Visitor:
    """An app of two questions behind the guard, and nobody who has come in yet."""
    app = FastAPI()
    app.add_api_route("/", hello)
    app.add_api_route("/api/echo", echo, methods=["POST"])
    return Visitor(Guard(app, door, Buckets(rate=0.0, burst=20)), door.path)


def enter(client: Visitor, door: Door) -> httpx.Response:
    return client.get(f"{ORIGIN}/", params={"token": door.token})


def test_the_token_becomes_a_cookie_and_leaves_the_address(client: Visitor, door: Door) -> None:
    answer = enter(client, door)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{door.path}/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert door.token not in cookie
    assert client.get("/").json() == {"said": "hello"}


@pytest.mark.parametrize("path", ["/", "/api/echo", "/?token=wrong", "/?token=", "/openapi.json", "/static/x"])
def test_nobody_comes_in_without_the_token(client: Visitor, path: str) -> None:
    for address in (path, f"{ORIGIN}{path}"):
        answer = client.get(address)
        assert answer.status_code == 401
        assert "exegete serve" in answer.text


def test_the_cookie_belongs_to_a_path_that_no_other_server_has(client: Visitor, door: Door) -> None:
    cookie = enter(client, door).headers["set-cookie"]
    assert cookie.startswith(f"exegete-{PORT}=")
    assert cookie.endswith(f"; Path={door.path}/")
    assert len(door.path) >= 16
    assert Door(PORT).path != door.path
    sent = [client.get(f"{ORIGIN}{path}").request.headers.get("cookie") for path in ("/", "/lab", f"{door.path}/")]
    assert [each is None for each in sent] == [True, True, False]  # a port doesn't matter to a browser
    for path in ("/", "/api/echo", f"{door.path}x/", door.path):  # nothing else is there, also for who has the cookie
        answer = client.get(f"{ORIGIN}{path}", headers={"cookie": f"{door.cookie}={door.session()}"})
        assert answer.status_code == 404
        assert "nothing here" in answer.text


def test_a_cookie_can_not_be_made_up(client: Visitor, door: Door) -> None:
    for made_up in ("me.0", "me", f"me.{Door(PORT).session().partition('.')[2]}", "é", ""):
        cookie = {b"cookie": f"{door.cookie}={made_up}".encode()}
        assert client.get("/", headers=cookie).status_code == 401
    assert client.get("/", headers={"cookie": f"{door.cookie}={door.session()}"}).status_code == 200
    assert client.get("/", headers={"cookie": f"exegete-1={door.session()}"}).status_code == 401


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch, door: Door) -> None:
    compared: list[bytes] = []

    def compare(first: bytes, second: bytes) -> bool:
        compared.append(first)
        return first == second

    monkeypatch.setattr("hmac.compare_digest", compare)
    assert not door.knows("wrong")
    assert door.client(f"{door.cookie}=name.signature") is None
    assert len(compared) == 2
    assert Door(PORT).token != door.token
    assert len(door.token) >= 43  # 256 bits


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8077", "127.0.0.1", "127.0.0.1:80", "localhost.evil.example:8077", "", "8077"],
)
def test_other_hosts_are_refused(client: Visitor, door: Door, host: str) -> None:
    enter(client, door)
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 403
    assert "its own address" in answer.text


@pytest.mark.parametrize(
    "sent",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
def test_other_origins_are_refused(client: Visitor, door: Door, sent: dict[str, str]) -> None:
    enter(client, door)
    answer = client.post("/api/echo", json={}, headers=sent)
    assert answer.status_code == 403
    assert "another site" in answer.json()["error"]
    assert client.post("/api/echo", json={}, headers={"origin": f"http://127.0.0.1:{PORT}"}).status_code == 200


def test_bodies_are_limited_whether_or_not_they_say_so(client: Visitor, door: Door) -> None:
    enter(client, door)
    long = json.dumps({"x": "a" * BODY}).encode()

    async def chunks() -> AsyncIterator[bytes]:
        yield long[: BODY // 2]
        yield long[BODY // 2 :]

    for body in (long, chunks()):  # with a length, and without one
        answer = client.post("/api/echo", content=body)
        assert answer.status_code == 413
        assert "at most 1 MB" in answer.json()["error"]
    assert client.post("/api/echo", content="{}", headers={"content-length": "-1"}).status_code == 413
    assert client.post("/api/echo", json={"x": "a" * 1000}).json()["x"] == "a" * 1000


def test_one_client_asks_only_so_often_and_others_may(client: Visitor, door: Door) -> None:
    enter(client, door)
    answers = [client.get("/").status_code for _ in range(25)]
    assert answers == [200] * 20 + [429] * 5
    assert "wait a second" in client.get("/").text
    other = client.get("/", headers={"cookie": f"{door.cookie}={door.session()}"})
    assert other.status_code == 200


def test_questions_come_back_with_time_and_few_clients_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("exegete.wings.explorer.guard.time.monotonic", lambda: now[0])
    buckets = Buckets(rate=2, burst=1)
    buckets.take("a")
    with pytest.raises(Refused):
        buckets.take("a")
    now[0] = 0.5
    buckets.take("a")
    for number in range(2 * CLIENTS):
        buckets.take(str(number))
    assert len(buckets._left) == CLIENTS


def test_every_answer_has_the_policy(client: Visitor, door: Door) -> None:
    answers = [client.get("/"), enter(client, door), client.get("/"), client.get("/", headers={"host": "x"})]
    for answer in answers:
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    policy = HEADERS["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


def test_on_all_addresses_numbers_are_ours_and_names_are_not() -> None:
    door = door_of("0.0.0.0", PORT)
    assert door.ours(f"192.168.1.5:{PORT}")
    assert door.ours(f"{socket.gethostname()}:{PORT}")
    assert not door.ours(f"evil.example:{PORT}")
    assert not door_of("127.0.0.1", PORT).ours(f"192.168.1.5:{PORT}")
    assert [loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "evil.example")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_a_port_that_is_taken_and_a_model_that_is_missing_are_sentences() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ExegeteError, match="choose another with --port"):
            bind_socket("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(UsageError, match="65535"):
        bind_socket("127.0.0.1", 70_000)
    with pytest.raises(ExegeteError, match="no checkpoint or run folder"):
        check_source("nowhere")


def test_sentences_have_no_paths() -> None:
    assert without_paths("there is no /home/ann b/x.y/checkpoint.json: train") == "there is no checkpoint.json: train"
    assert without_paths("either/or, 3/4 and a/b stay") == "either/or, 3/4 and a/b stay"


def test_the_server_imports_no_torch() -> None:
    code = (
        "import sys, exegete.cli, exegete.wings.explorer.start\n"
        "exegete.wings.explorer.start.make_app([]).openapi()\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from exegete.wings.explorer import command as serve

    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    with pytest.raises(ExegeteError, match="needs fastapi and uvicorn: pip install fastapi uvicorn"):
        serve.serve_command()


# What follows asks a real server.


def ours(server: Running) -> str:
    """Headers of somebody who came with the token."""
    name = server.door.cookie
    return f"Host: 127.0.0.1:{server.door.port}\r\nCookie: {name}={server.client.cookies[name]}\r\n"


@pytest.mark.parametrize(
    "path",
    [
        *(f"/static/{name}" for name in ("../server.py", "%2e%2e%2fserver.py", "..%5cserver.py", "/etc/passwd", "%00")),
        *("/etc/passwd", "/api/models/../../etc/passwd"),
    ],
)
def test_no_path_touches_the_disk(server: Running, path: str) -> None:
    with socket.create_connection(("127.0.0.1", server.door.port)) as raw:  # as it is: clients tidy paths
        raw.sendall(f"GET {server.door.path}{path} HTTP/1.1\r\n{ours(server)}Connection: close\r\n\r\n".encode())
        said = b""
        while part := raw.recv(65_536):
            said += part
    assert said.startswith(b"HTTP/1.1 404")
    assert b"root:" not in said


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"model": 99, "text": TEXT}, 404),
        ({"model": -1, "text": TEXT}, 422),
        ({"model": 0, "text": ""}, 422),
        ({"model": 0, "text": "a" * 20_001}, 422),
        ({"model": 0, "text": TEXT, "path": "/etc/passwd"}, 422),
        ({"model": "/etc/passwd", "text": TEXT}, 422),
        ({"model": 0, "text": TEXT, "rows": [{"row": 0, "weights": [-1.0]}]}, 422),
        ({"model": 0, "text": TEXT, "rows": [{"row": 0, "weights": ["NaN"]}]}, 422),
        ([], 422),
        ({}, 422),
    ],
)
def test_wrong_fields_are_one_sentence(server: Running, asked: Any, status: int) -> None:
    answer = server.client.post("/api/weigh", json=asked)
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"null", b"[" * 100_000])
def test_malformed_bodies_are_refused(server: Running, body: bytes) -> None:
    answer = server.client.post("/api/weigh", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]


def test_a_slow_client_is_let_go(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "PATIENCE", 0.2)
    with socket.create_connection(("127.0.0.1", server.door.port)) as raw:
        path = f"{server.door.path}/api/weigh"
        raw.sendall(f"POST {path} HTTP/1.1\r\n{ours(server)}Content-Length: 100\r\n\r\n{{".encode())
        raw.settimeout(10)
        said = dribbled(raw, b" ")
        assert said.startswith(b"HTTP/1.1 408")
        assert b"did not arrive in time" in said


@pytest.mark.parametrize("beginning", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nX-A: b\r\nX-"])
def test_headers_that_never_end_are_let_go(server: Running, monkeypatch: pytest.MonkeyPatch, beginning: bytes) -> None:
    monkeypatch.setattr(headers, "PATIENCE", 0.3)
    with socket.create_connection(("127.0.0.1", server.door.port)) as raw:
        raw.sendall(beginning)
        raw.settimeout(10)
        said = dribbled(raw, b"x" if beginning else b"")
        assert said.startswith(b"HTTP/1.1 408")
        assert b"did not arrive in time" in said
        assert raw.recv(1) == b""  # and the connection is closed


def test_headers_of_a_second_request_have_a_limit_too(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "PATIENCE", 0.3)
    with socket.create_connection(("127.0.0.1", server.door.port)) as raw:
        raw.settimeout(10)
        raw.sendall(f"GET {server.door.path}/api/models HTTP/1.1\r\n{ours(server)}\r\n".encode())
        answer = b""
        while not answer.endswith(b"}]"):
            answer += raw.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 200")
        raw.sendall(b"GET / HTTP/1.1\r\nX-")
        assert b"HTTP/1.1 408" in dribbled(raw, b"x")


def test_whoever_takes_long_to_answer_is_not_cut_off(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "PATIENCE", 0.3)
    told = server.follow("adversary", model=1, text=TEXT, site="encoder.0", steps=150)
    assert told[-1][0] == "found"


def dribbled(raw: socket.socket, byte: bytes) -> bytes:
    """What a server says to somebody who sends a byte now and then."""
    raw.setblocking(False)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        with suppress(BlockingIOError):
            said = raw.recv(4096)
            raw.setblocking(True)
            return said
        with suppress(OSError):
            raw.sendall(byte)
        time.sleep(0.05)
    raise AssertionError("it waits for ever")


def test_a_full_queue_says_so(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exegete.wings.explorer.workers.WAITING", 0)
    answer = server.client.post("/api/weigh", json={"model": 0, "text": TEXT})
    assert answer.status_code == 429
    assert "waiting" in answer.json()["error"]


@pytest.mark.slow
def test_a_closed_tab_stops_its_work(server: Running) -> None:
    slow = server.models[1]._slow
    assert slow is not None
    asked = {"model": 1, "text": "a b c d e f g h i j", "site": "encoder.0", "steps": 2000}
    until(lambda: slow.waiting == 0)
    with server.client.stream("POST", "/api/follow/adversary", json=asked) as answer:
        assert "told" in next(answer.iter_text())
        assert slow.waiting == 1
    started = time.monotonic()
    until(lambda: slow.waiting == 0)
    assert time.monotonic() - started < 5  # the whole search would take longer
    assert server.client.get("/api/models").status_code == 200


@pytest.mark.slow
def test_a_model_that_is_damaged_says_so_without_a_path(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.json").write_text('{"format": 0}')
    with running([str(tmp_path)]) as found:
        (about,) = found.client.get("/api/models").json()
        assert about["state"] == "failed"
        assert "in another format" in about["said"]
        assert str(tmp_path.parent) not in about["said"]
        answer = found.client.post("/api/open", json={"model": 0, "text": "a"})
        assert answer.status_code == 400
        assert answer.json()["error"] == about["said"]


def test_the_reference_lists_every_question(server: Running) -> None:
    page = server.client.get("/api").text
    for path in server.client.get("/openapi.json").json()["paths"]:
        assert path in page
