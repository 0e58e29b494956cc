"""Every route below /api/v1, as one table: what it needs, what it takes, what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from observant_host.decisions.acts import Act
from observant_host.incidents.purge import Purged
from observant_host.routing.open_calls import CallInFlight
from observant_host.service.api import acting, answers, bodies, calling, live, looking
from observant_host.service.served import CaptureBegun, LogLevelSet
from observant_host.supervision.examine import Examination
from observant_host.supervision.peer_state import ServerView

if TYPE_CHECKING:
    from observant_host.service.api.exchange import Handler

PREFIX: Final = "/api/v1"
Scope = Literal["mcp", "read", "operate"]
STREAM: Final = "text/event-stream"


class Query(NamedTuple):
    """An optional parameter; `kind` is its JSON type."""

    name: str
    kind: Literal["string", "number"]
    about: str


class Route(NamedTuple):
    """`path` is below PREFIX. `answer` None: a stream of server-sent events, or a document that
    describes itself. `ends_call`: errors have the document of a call."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    scope: Scope
    handler: Handler
    summary: str
    answer: type | None
    body: type | None = None
    query: tuple[Query, ...] = ()
    ends_call: bool = False
    media: str = "application/json"


def _get(path: str, handler: Handler, summary: str, answer: type | None, **more: Any) -> Route:
    return Route("GET", path, "read", handler, summary, answer, **more)


def _act(path: str, handler: Handler, summary: str, body: type, *, answer: type) -> Route:
    return Route("POST", path, "operate", handler, summary, answer, body)


def _call(path: str, handler: Handler, summary: str, body: type) -> Route:
    return Route("POST", path, "mcp", handler, summary, answers.Called, body, ends_call=True)


def _verb(verb: str, handler: Handler, summary: str, body: type = bodies.ActBody) -> Route:
    answer = {"examine": Examination, "capture": CaptureBegun}.get(verb, ServerView)
    return _act(f"/servers/{{name}}/{verb}", handler, summary, body, answer=answer)


SINCE: Final = Query("since", "number", "Epoch seconds")
UNTIL: Final = Query("until", "number", "Epoch seconds")
SERVER: Final = Query("server", "string", "Only of this server")

ROUTES: Final[tuple[Route, ...]] = (
    _get("/servers", looking.servers, "State, era and reason of every server", answers.Servers),
    _get("/servers/{name}", looking.server, "One server", ServerView),
    _verb(Act.PROBE, acting.once("probe"), "Negotiate and list now"),
    _verb(Act.RETRY, acting.once("retry"), "Try again now, however often it failed"),
    _verb(Act.RESTART, acting.once("restart"), "End its process or connection, begin a new one"),
    _verb(
        Act.HOLD,
        acting.standing("hold"),
        "Let nothing happen to it by itself",
        bodies.RulingBody,
    ),
    _verb(
        Act.DRAIN,
        acting.standing("drain"),
        "Let its calls end, then switch it off",
        bodies.RulingBody,
    ),
    _verb(
        Act.DISABLE,
        acting.switching("disable"),
        "Switch it off, or one tool of it",
        bodies.SwitchBody,
    ),
    _verb(
        Act.ENABLE,
        acting.switching("enable"),
        "Undo hold, disable or drain, or switch one tool on again",
        bodies.SwitchBody,
    ),
    _verb("allow", acting.allow, "Permit the bounded legacy handshake", bodies.RulingBody),
    _verb("examine", acting.examine, "Look at it in a process of its own"),
    _verb("capture", acting.capture, "Write its frames to a private file", bodies.CaptureBody),
    _get("/tools", looking.tools, "The tools of all servers", answers.Tools),
    _get("/prompts", looking.prompts, "The prompts of all servers", answers.Prompts),
    _get("/resources", looking.resources, "The resources of all servers", answers.Resources),
    _call("/tools/call", calling.call_tool, "Call a tool", bodies.CallBody),
    _call("/prompts/get", calling.get_prompt, "Get a prompt", bodies.CallBody),
    _call("/resources/read", calling.read_resource, "Read a resource", bodies.ReadBody),
    _get("/calls", looking.calls, "Calls on their way, and the last that ended", answers.Calls),
    Route(
        "DELETE",
        "/calls/{id}",
        "operate",
        acting.cancel,
        "End a call, at its server too",
        CallInFlight,
        query=(Query("reason", "string", "Why; it is recorded with who asks"),),
    ),
    _get(
        "/decisions",
        looking.decisions,
        "Decisions with their evidence",
        answers.Decisions,
        query=(SERVER, SINCE),
    ),
    _get(
        "/incidents",
        looking.incidents,
        "What went wrong, and why",
        answers.Incidents,
        query=(SERVER, SINCE, UNTIL),
    ),
    _get("/events", live.events, "What changes, as it changes", None, media=STREAM),
    _get("/log", looking.log, "The last lines of the host's log", answers.LogLines),
    _act(
        "/log-level",
        acting.log_level,
        "Another level of the log, for a time",
        bodies.LogLevelBody,
        answer=LogLevelSet,
    ),
    _act(
        "/reload",
        acting.reload,
        "Apply what changed in the configuration",
        bodies.ReloadBody,
        answer=answers.Reloaded,
    ),
    _act(
        "/record/purge",
        acting.purge,
        "Delete from the record",
        bodies.PurgeBody,
        answer=Purged,
    ),
)
