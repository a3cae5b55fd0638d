"""The field's terms: words of our own that were replaced by those a newcomer searches for do not come back.

Each row is one rule. `names` are whole names of classes, functions and modules (a leading underscore aside), `words`
parts of any name that is defined, `modules` names of files and folders, of loggers and of blueprints; `prose` is looked
for in comments, docstrings and pages. What a name means elsewhere stays: `in_flight` is TCP's, `claims` are OIDC's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.arch.test_citations import prose_of

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for path in sorted((ROOT / "coder").rglob("*.py"))
    if "_pb2" not in path.name and not {"node_modules", "versions"} & set(path.parts)
]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True)
class Term:
    standard: str
    names: str = ""
    words: str = ""
    modules: str = ""
    prose: str = ""
    inside: str = "coder"
    "The room the names are ours in; elsewhere they are ordinary words."


TERMS = (
    Term("HttpServer, AppProxy, SshAcceptor, MetricsEndpoint", names="FrontDoor AppDoor SshDoor MetricsDoor"),
    Term("AppAuthorizer, LocalAppAuthorizer, RemoteAppAuthorizer", names="OwnKeeper ProxyKeeper", words="keeper"),
    Term("rpc_endpoints", modules="links"),
    Term("allowed_actions", names="ways_out", prose=r"\bways_out\b"),
    Term("ProxyRequest, UpstreamRequest", words="errand", prose=r"\berrands?\b"),
    Term("ProxyRequest", words="visit", inside="coder/appproxy/apps"),
    Term("Target", names="Place", inside="coder/appproxy/apps"),
    Term("spec", words="wish wishes"),
    Term("BuildRequest, enqueue_build, QueuedBuild", names="BuildOrder place_build Placed read_placed"),
    Term("ViewContext, ModuleScope, OidcClaims", names="Scene World Told", words="scene"),
    Term("record_event, handlers", names="happened", words="tellers", modules="notable_events", inside="coder/coderd"),
    Term("Notification, PgNotification, CoordinatorMessage, StackEvent", names="Notice"),
    Term("subscriptions, change_feed", modules="watching"),
    Term("change_feed", modules="changes", inside="coder/coderd"),
    Term("auth_cache", names="known_callers", prose=r"\bknown_callers\b"),
    Term("session_revocation", names="open_sessions", modules="open_sessions", prose=r"\bopen_sessions\b"),
    Term("prepared_statements, queue_queries, build_owner, user_assets", modules="hot waiting owners belongings"),
    Term("orphaning, encryption_at_rest", words="abandonment", modules="sealing", prose=r"\babandonment\b"),
    Term("carried_stream", names="HttpTunnels", words="carrier carriers", modules="carriers http_tunnel http_tunnels"),
    Term("transport; probe size", words="rung rungs", prose=r"(?<!`)\brungs?\b(?!`)"),
    Term("wireguard_gateway", words="hub", prose=r"\bhubs?\b"),
    Term("middleware", modules="frame"),
    Term("fast_path, StreamWrapper", names="FastLane PassingStream", prose=r"\bfast[- ]lane\b"),
    Term("tcp_input, tcp_output, scoreboard, retransmitted", modules="arrival emission flight again"),
    Term("retransmitted", names="again", inside="coder/mesh/core/stack"),
    Term("Event, time_wait, same-stack peer", names="Fact quiet_time", words="neighbour", inside="coder/mesh/core"),
    Term("timer_queue", words="agenda", modules="agenda"),
    Term("prebuild_claim", modules="claims", inside="coder/agent"),
    Term("unsupported, no_provisioner", modules="not_offered unmatched", words="unmatched", prose=r"\bnot_offered\b"),
)
KEPT = {
    "coder/net/carried_stream.py: CARRIER": "the name of the header `Coder-Carrier`, which is on the wire",
}


@dataclass(frozen=True)
class Named:
    path: str
    name: str
    is_module: bool = False

    @property
    def words(self) -> set[str]:
        return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", self.name)}


def named_in(path: str, tree: ast.Module) -> Iterator[Named]:
    """Modules (and the folders they stand in), loggers, blueprints, and whatever a statement defines."""
    yield from (Named(path, part.removesuffix(".py"), is_module=True) for part in path.split("/"))
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield Named(path, node.name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield Named(path, name)
            case ast.Call(func=ast.Name(id="get_logger" | "Blueprint"), args=[ast.Constant(value=str() as name), *_]):
                yield Named(path, name, is_module=True)


def breaks(term: Term, named: Named) -> bool:
    if not f"{named.path}/".startswith(f"{term.inside}/"):
        return False
    if named.is_module and named.name in term.modules.split():
        return True
    return named.name.lstrip("_") in term.names.split() or bool(named.words & set(term.words.split()))


@cache
def names() -> frozenset[Named]:
    paths = ((str(path.relative_to(ROOT)), path) for path in SOURCES)
    return frozenset(one for name, path in paths for one in named_in(name, ast.parse(path.read_text())))


@cache
def prose() -> dict[str, str]:
    return {str(path.relative_to(ROOT)): prose_of(path) for path in (*SOURCES, *PAGES)}


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.standard)
def test_names_are_the_fields(term: Term) -> None:
    found = {f"{named.path}: {named.name}" for named in names() if breaks(term, named)}
    assert not found - KEPT.keys(), f"the field says {term.standard}"


@pytest.mark.parametrize("term", [term for term in TERMS if term.prose], ids=lambda term: term.standard)
def test_prose_says_what_readers_search_for(term: Term) -> None:
    rule = re.compile(term.prose, re.IGNORECASE)
    found = {path: told for path, text in prose().items() if (told := rule.findall(text))}
    assert not found, f"the field says {term.standard}"


def test_what_is_kept_is_there() -> None:
    there = {f"{named.path}: {named.name}" for named in names() if any(breaks(term, named) for term in TERMS)}
    assert there == set(KEPT)


@pytest.mark.parametrize(
    ("path", "source", "found"),
    [
        ("coder/net/links.py", "", ["links"]),
        ("coder/net/x.py", "class _Notice: ...\nnotice = 1\nnoticed = 2", ["_Notice"]),
        ("coder/net/x.py", "def f(rung, strung): ...\nself.HUB_STATS = github = 1", ["HUB_STATS", "rung"]),
        ("coder/net/x.py", "_log = get_logger('open_sessions')\nopen_sessions_of = 1", ["open_sessions"]),
        ("coder/net/x.py", "blueprint = Blueprint('not_offered', __name__)", ["not_offered"]),
        ("coder/agent/claims.py", "", ["claims"]),
        ("coder/coderd/claims.py", "in_flight = claims = 1", []),
    ],
)
def test_own_words_are_told_from_ordinary_ones(path: str, source: str, found: list[str]) -> None:
    broken = {one.name for one in named_in(path, ast.parse(source)) if any(breaks(term, one) for term in TERMS)}
    assert sorted(broken) == found
