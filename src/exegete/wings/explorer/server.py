"""Server: the questions of the page, as an API with types; every number is computed by a worker."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from exegete.plugins import ExegeteError, UsageError, __version__, fill_template, read_shipped
from exegete.wings.explorer.data import Data
from exegete.wings.explorer.guard import CLIENT
from exegete.wings.explorer.messages import (
    Differ,
    Explain,
    FindAdversary,
    KnockOut,
    OfRun,
    Open,
    PermuteWeights,
    RewriteRows,
    RunTexts,
    RunWords,
    StartAudit,
    Text,
    Weigh,
)  # fmt: skip
from exegete.wings.explorer.queue import Busy
from exegete.wings.explorer.replies import (
    Card,
    Differed,
    ExplainedText,
    OpenedSite,
    Outcomes,
    ServedModel,
    ServedRun,
    TextPage,
    Weighed,
    WordPage,
    WrittenWords,
    Wrong,
)  # fmt: skip
from exegete.wings.explorer.workers import Served, WorkerMessage

PAGE = "exegete-page"  # the header by which a page is told from others of the same browser
KINDS = {"css": "text/css", "js": "text/javascript", "html": "text/html", "svg": "image/svg+xml"}
SHARED = ("report/style.css", "report/heatmap.css", "report/scheme.js", "report/report.css")  # of the report
WRONG: dict[int | str, dict[str, Any]] = {
    400: {"model": Wrong, "description": "what is asked can't be answered"},
    404: {"model": Wrong, "description": "there is no such model or run"},
    422: {"model": Wrong, "description": "a field has a wrong value"},
    429: {"model": Wrong, "description": "too many questions at a time"},
}
# A report is a document of a file: it gets an origin of its own, without scripts, and neither our cookie nor our API.
REPORT_POLICY = (
    "sandbox allow-downloads; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {}},
        "description": "events `told` while it goes on, then `found` or `wrong`",
    }
}


def static_files() -> dict[str, str]:
    """All files of the page by name, read once: no name from a browser ever touches the disk."""
    own = [path.name for path in files("exegete").joinpath("wings/explorer/static").iterdir()]
    ours = {name: read_shipped(f"wings/explorer/static/{name}") for name in own}
    return ours | {path.rpartition("/")[2]: read_shipped(path) for path in SHARED}


def make_app(served: Sequence[Served]) -> FastAPI:
    """The app over the models of the command line; it stands behind a `Guard`."""
    app = FastAPI(title="Exegete explorer", version=__version__, docs_url=None, redoc_url=None)
    app.state.served, app.state.files = list(served), static_files()
    app.add_api_route("/", _page, include_in_schema=False)
    app.add_api_route("/static/{name}", _file, include_in_schema=False)
    app.add_api_route("/api", _reference, include_in_schema=False)
    add = partial(app.add_api_route, responses=WRONG)
    add("/api/models", _models, response_model=list[ServedModel], summary="The models, and how far they are")
    add("/api/explain", _explain, methods=["POST"], response_model=ExplainedText, summary="Heat maps of cheap methods")
    add("/api/differ", _differ, methods=["POST"], response_model=Differed, summary="Two texts side by side")
    add(
        "/api/write",
        _write,
        methods=["POST"],
        response_model=WrittenWords,
        summary="What a translator writes for a text",
    )
    add("/api/open", _open, methods=["POST"], response_model=OpenedSite, summary="The attention of a text at a site")
    add("/api/weigh", _weigh, methods=["POST"], response_model=Weighed, summary="The prediction under other weights")
    add("/api/rewrite", _rewrite, methods=["POST"], response_model=Weighed, summary="Rows changed, and the prediction")
    add("/api/cut", _cut, methods=["POST"], response_model=Weighed, summary="The prediction with a word knocked out")
    add("/api/permute", _permute, methods=["POST"], response_model=Outcomes, summary="What random orders do")
    add("/api/run", _run, methods=["POST"], response_model=ServedRun, summary="What a run has")
    add("/api/texts", _texts, methods=["POST"], response_model=TextPage, summary="The texts of a run, page by page")
    add("/api/words", _words, methods=["POST"], response_model=WordPage, summary="The words of all texts of a run")
    add("/api/scorecard", _scorecard, methods=["POST"], response_model=Card, summary="The scorecard of a run")
    app.add_api_route("/runs/{number}/report", _report, include_in_schema=False)
    follow = partial(app.add_api_route, methods=["POST"], response_class=StreamingResponse, responses=WRONG | EVENTS)
    follow("/api/follow/explain", _follow_explain, summary="Heat maps of any methods")
    follow("/api/follow/differ", _follow_differ, summary="Two texts side by side, by any methods")
    follow("/api/follow/adversary", _follow_adversary, summary="Search for an adversary")
    follow("/api/follow/audit", _follow_audit, summary="Audit a model, which is then a run")
    for kind, said in ((ExegeteError, _wrong), (RequestValidationError, _invalid), (HTTPException, _missing)):
        app.add_exception_handler(kind, said)  # type: ignore[arg-type]
    app.add_exception_handler(Exception, _defect)
    return app


def _of(request: Request, asked: Text | StartAudit) -> Served:
    served: list[Served] = request.app.state.served
    if asked.model >= len(served):
        raise HTTPException(404, f"there is no model {asked.model}: `exegete serve` was given {len(served)}")
    of = served[asked.model]
    of.check()
    if isinstance(asked, Explain):
        of.check_offered(asked)
    return of


def _page_of(request: Request) -> str | None:
    """Which page of which client asks, where it says so."""
    page = request.headers.get(PAGE)
    return None if page is None else f"{request.scope.get(CLIENT)} {page[:64]}"


async def _while_there(request: Request, work: Coroutine[Any, Any, Mapping[str, Any]]) -> Mapping[str, Any]:
    """An answer, for as long as somebody waits for it: whoever goes away stops the work."""
    answering, leaving = asyncio.create_task(work), asyncio.create_task(_left(request))
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            raise HTTPException(499, "nobody waits for this answer any more")
        return answering.result()
    finally:
        for task in (answering, leaving):
            task.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _data(request: Request, number: int) -> Data:
    served: list[Served] = request.app.state.served
    found = served[number].data if number < len(served) else None
    if found is None:
        raise HTTPException(404, f"there is no run {number}: give its folder to `exegete serve`")
    return found


async def _page(request: Request) -> HTMLResponse:
    return HTMLResponse(request.app.state.files["index.html"])


async def _file(request: Request, name: str) -> Response:
    if name not in request.app.state.files:
        raise HTTPException(404, "there is no such file")
    kind = KINDS[name.rpartition(".")[2]]
    return Response(request.app.state.files[name], media_type=f"{kind}; charset=utf-8")


async def _reference(request: Request) -> HTMLResponse:
    """The OpenAPI description for a person."""
    return HTMLResponse(fill_template("wings/explorer/templates/api.html", api=request.app.openapi()))


async def _models(request: Request) -> list[ServedModel]:
    return [each.about for each in request.app.state.served]


async def _explain(request: Request, asked: Explain) -> Mapping[str, Any]:
    return await _while_there(request, _cheap(request, asked, "explain").ask("explain", asked, page=_page_of(request)))


async def _differ(request: Request, asked: Differ) -> Mapping[str, Any]:
    return await _while_there(request, _cheap(request, asked, "differ").ask("differ", asked, page=_page_of(request)))


def _cheap(request: Request, asked: Explain, question: str) -> Served:
    """Who answers at once: methods that take long are followed."""
    of = _of(request, asked)
    cheap = {method.name for method in of.about.methods if method.cheap}
    if asked.methods is not None and not {*asked.methods} <= cheap:
        raise UsageError(f"these methods take long: ask /api/follow/{question}, which tells how far it is")
    return of


async def _write(request: Request, asked: Text) -> Mapping[str, Any]:
    return await _while_there(request, _of(request, asked).ask("write", asked))


async def _open(request: Request, asked: Open) -> Mapping[str, Any]:
    return await _while_there(request, _of(request, asked).ask("open", asked))


async def _weigh(request: Request, asked: Weigh) -> Mapping[str, Any]:
    return await _while_there(request, _of(request, asked).ask("weigh", asked, keep=False))


async def _rewrite(request: Request, asked: RewriteRows) -> Mapping[str, Any]:
    return await _while_there(request, _of(request, asked).ask("rewrite", asked, keep=False))


async def _cut(request: Request, asked: KnockOut) -> Mapping[str, Any]:
    return await _while_there(request, _of(request, asked).ask("cut", asked))


async def _permute(request: Request, asked: PermuteWeights) -> Mapping[str, Any]:
    return await _while_there(request, _of(request, asked).ask("permute", asked))


async def _run(request: Request, asked: OfRun) -> Mapping[str, Any]:
    return await _data(request, asked.run).about(asked.run)


async def _texts(request: Request, asked: RunTexts) -> Mapping[str, Any]:
    return await _data(request, asked.run).texts(asked)


async def _words(request: Request, asked: RunWords) -> Mapping[str, Any]:
    return await _data(request, asked.run).words(asked)


async def _scorecard(request: Request, asked: OfRun) -> Mapping[str, Any]:
    return await _data(request, asked.run).card(asked.run)


async def _report(request: Request, number: Annotated[int, Path(ge=0, lt=100)]) -> FileResponse:
    page = _data(request, number).page
    if page is None:
        raise HTTPException(404, "this run has no report, or somebody changed it: write it with `exegete report`")
    return FileResponse(page, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})


async def _follow_explain(request: Request, asked: Explain) -> StreamingResponse:
    return _streamed(_of(request, asked).follow("explain", asked, _page_of(request)))


async def _follow_differ(request: Request, asked: Differ) -> StreamingResponse:
    return _streamed(_of(request, asked).follow("differ", asked, _page_of(request)))


async def _follow_adversary(request: Request, asked: FindAdversary) -> StreamingResponse:
    return _streamed(_of(request, asked).follow("adversary", asked, _page_of(request)))


async def _follow_audit(request: Request, asked: StartAudit) -> StreamingResponse:
    return _streamed(_of(request, asked).audit(asked))


def _streamed(work: AsyncGenerator[WorkerMessage, None]) -> StreamingResponse:
    return StreamingResponse(_events(work), media_type="text/event-stream")


async def _events(work: AsyncGenerator[WorkerMessage, None]) -> AsyncIterator[str]:
    """Server-sent events; when the page goes away this is closed, and the work stops."""
    try:
        async with aclosing(work) as parts:
            async for kind, said in parts:
                yield _event(kind, said)
    except ExegeteError as error:
        yield _event("wrong", {"error": str(error)})
    except RuntimeError as error:
        print(error, file=sys.stderr)
        yield _event("wrong", {"error": DEFECT})


def _event(kind: str, said: Mapping[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(said, allow_nan=False)}\n\n"


DEFECT = "something went wrong inside, and the terminal says what: please report it"


async def _wrong(_: Request, error: ExegeteError) -> JSONResponse:
    return JSONResponse({"error": str(error)}, 429 if isinstance(error, Busy) else 400)


async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
    return JSONResponse({"error": f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}"}, 422)


async def _missing(_: Request, error: HTTPException) -> JSONResponse:
    return JSONResponse({"error": str(error.detail)}, error.status_code, headers=error.headers)


async def _defect(_: Request, error: Exception) -> JSONResponse:
    """What broke is for the terminal, which uvicorn tells; a browser gets neither traces nor paths."""
    del error
    return JSONResponse({"error": DEFECT}, 500)
