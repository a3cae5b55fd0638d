"""What one handler takes, answers and refuses, read from its source and that of the functions it calls.

The words it knows are those of this package: `read_body`, `reply`, `message`, `Query`, `path_uuid`, `sse`, … A new word
of that kind needs a line in `_Reader`; a handler needs nothing.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any
from urllib.parse import parse_qs

import quart

from coder.api.errors import Response as Envelope
from coder.base.errors import CoderError
from coder.coderd.http import json as json_words
from coder.coderd.http import query as query_words
from coder.coderd.http import streams
from coder.coderd.http.errors import STATUS
from coder.coderd.http.openapi.inference import UNKNOWN, infer
from coder.coderd.http.openapi.refusals import followed, refusals_of, targets
from coder.coderd.http.openapi.sources import MISSING, Scope, node_of, own_nodes, scope_of
from coder.coderd.services import agents, authentication
from coder.domain.search import Terms, parse_query

JSON = "application/json"
_HTTP = "coder.coderd.http."
_QUERY_TYPES = {
    "text": "string",
    "positive": "integer",
    "boolean": "boolean",
    "uuid": "uuid",
    "uuids": "uuids",
    "require": "string",
}
_HEADERS = {"Authorization": "Authorization", "Coder-Provisioner-Daemon-Key": "CoderProvisionerKey"}
_GATES = {authentication.authenticate, agents.authenticate_agent}
_TERM_WORDS = {"one", "many", "boolean", "time", "uuid", "uuids", "choice"}
_METHODS = {"get", "getlist", *_QUERY_TYPES, *_TERM_WORDS}
_NOT_TOLD = {"coder_session_token"}
"Another way to say who one is; the security schemes tell."


@dataclass(slots=True)
class Body:
    """What a handler reads."""

    kind: Any = UNKNOWN
    content_type: str = JSON
    required: tuple[str, ...] = ()
    optional: bool = False


@dataclass(slots=True)
class Facts:
    """All that is known of one handler."""

    answers: dict[int, dict[str, list[Any]]] = field(default_factory=dict)
    "Status -> content type (empty for no body) -> types."
    body: Body | None = None
    query: dict[str, str] = field(default_factory=dict)
    "Name -> one of string, integer, boolean, uuid, uuids."
    required_query: set[str] = field(default_factory=set)
    search_keys: set[str] = field(default_factory=set)
    "Keys of a `q`."
    uuids: set[str] = field(default_factory=set)
    "Path parameters that are UUIDs."
    schemes: set[str] = field(default_factory=set)
    "How callers may prove who they are: names of the document's security schemes."
    loose: str = ""
    "Content type of a body read as bytes, where the handler shows what it does with them."
    dynamic: set[str] = field(default_factory=set)
    "Content types of answers whose status is that of a refusal caught by the handler."
    terms_from_query: bool = False
    "Search keys are query parameters of their own, not keys of a `q`."
    service: Any = None
    "The last service function called: its words describe the operation."

    def add(self, status: int, content_type: str, kind: Any = UNKNOWN) -> None:
        kinds = self.answers.setdefault(status, {}).setdefault(content_type.partition(";")[0], [])
        if kind is not UNKNOWN and kind not in kinds:
            kinds.append(kind)


def read_handler(view: FunctionType, before: Iterable[FunctionType] = ()) -> Facts:
    """The facts of a view, its decorators and what runs `before` it included."""
    facts = Facts()
    _Reader(facts).follow(view, None, None, frozenset())
    kinds = frozenset().union(refusals_of(view), *map(refusals_of, before))
    caught = refusals_of(inspect.unwrap(view)) - kinds
    for content_type in facts.dynamic:
        for status in statuses_of(caught):
            facts.add(status, content_type)
    for status in statuses_of(kinds):
        if not (status == 401 and 401 in facts.answers):
            facts.add(status, JSON, Envelope)
    if facts.body is not None and facts.body.kind is UNKNOWN and facts.loose:
        facts.body = Body(dict[str, Any] if facts.loose == JSON else UNKNOWN, facts.loose)
    if facts.terms_from_query:
        for key in facts.search_keys:
            facts.query.setdefault(key, "string")
    return facts


def statuses_of(kinds: Iterable[type[CoderError]]) -> set[int]:
    """The HTTP statuses errors are answered with."""
    found: set[int] = set()
    for kind in kinds:
        found |= set(getattr(kind, "statuses", ())) or {STATUS.get(getattr(kind, "kind", ""), 400)}
    return found


class _Reader:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def follow(
        self, function: FunctionType, call: ast.Call | None, caller: Scope | None, trail: frozenset[Any]
    ) -> None:
        """Reads a function of the HTTP package and those it calls."""
        node = node_of(function)
        if node is None or function in trail:
            return
        scope = caller.bind(function, node, call) if call is not None and caller is not None else scope_of(function)
        for item in own_nodes(node):
            if isinstance(item, ast.Call):
                self._call(item, scope, trail | {function})
            elif isinstance(item, ast.Subscript | ast.Compare):
                self._look(item, scope)

    def _call(self, call: ast.Call, scope: Scope, trail: frozenset[Any]) -> None:
        target = scope.resolve(call.func)
        word = _WORDS.get(target) if target is not MISSING and _hashable(target) else None
        if word is not None:
            word(self, call, scope)
            return
        if isinstance(call.func, ast.Attribute):
            self._method(call, call.func, scope)
        for found in targets(call, scope):
            module = found.__globals__["__name__"]
            if module.startswith(_HTTP):
                named = found is target
                self.follow(found, call if named else None, scope if named else None, trail)
            elif followed(found):
                self._service(found)

    # ---- answers

    def reply(self, call: ast.Call, scope: Scope) -> None:
        kind = infer(call.args[0], scope)
        for status in _statuses(_argument(call, 1, "status"), scope, 200):
            self._facts.add(status, JSON, kind)

    def message(self, call: ast.Call, scope: Scope) -> None:
        for status in _statuses(_argument(call, 1, "status"), scope, 200):
            self._facts.add(status, JSON, Envelope)

    def no_content(self, call: ast.Call, scope: Scope) -> None:
        self._facts.add(204, "")

    def events(self, call: ast.Call, scope: Scope) -> None:
        self._facts.add(200, "text/event-stream")

    def response(self, call: ast.Call, scope: Scope) -> None:
        content = _argument(call, 4, "content_type") or _argument(call, 3, "mimetype")
        kinds = _texts(content, scope) if content is not None else [""]
        body = _argument(call, 0, "response")
        empty = isinstance(body, ast.Constant) and not body.value
        statuses = _statuses(_argument(call, 1, "status"), scope, 200)
        if not statuses:
            self._facts.dynamic |= {kind.partition(";")[0] for kind in kinds}
        for status in statuses:
            for kind in kinds:
                nothing = empty or status in {204, 304}
                self._facts.add(status, "" if nothing else kind or "application/octet-stream")

    def redirect(self, call: ast.Call, scope: Scope) -> None:
        for status in _statuses(_argument(call, 1, "code"), scope, 302):
            self._facts.add(status, "")

    # ---- what is read

    def read_body(self, call: ast.Call, scope: Scope) -> None:
        kind = scope.resolve(call.args[0])
        optional = any(item.arg == "allow_empty" for item in call.keywords)
        required = _argument(call, 1, "required")
        names = _constant(required, scope) if required is not None else ()
        self._facts.body = Body(UNKNOWN if kind is MISSING else kind, JSON, tuple(names or ()), optional)

    def read_bytes(self, call: ast.Call, scope: Scope) -> None:
        if self._facts.body is None:
            self._facts.body = Body(content_type="application/octet-stream")

    def form(self, call: ast.Call, scope: Scope) -> None:
        self._facts.loose = "application/x-www-form-urlencoded"

    def loose_json(self, call: ast.Call, scope: Scope) -> None:
        self._facts.loose = self._facts.loose or JSON

    def terms(self, call: ast.Call, scope: Scope) -> None:
        self._facts.terms_from_query = True

    def path_uuid(self, call: ast.Call, scope: Scope) -> None:
        node: ast.expr = call.args[0]
        while isinstance(node, ast.Name) and node.id in scope.bound:
            node, scope = scope.bound[node.id]
        if isinstance(node, ast.Name) and node.id in scope.parameters:
            self._facts.uuids.add(node.id)

    def search(self, call: ast.Call, scope: Scope) -> None:
        default = _constant(call.args[1], scope) if len(call.args) > 1 else None
        if isinstance(default, str):
            self._facts.search_keys.add(default)

    def _method(self, call: ast.Call, func: ast.Attribute, scope: Scope) -> None:
        if func.attr not in _METHODS or not call.args:
            return
        for first in _values(call.args[0], scope):
            if isinstance(first, str):
                self._named(first, func, scope)

    def _named(self, first: str, func: ast.Attribute, scope: Scope) -> None:
        if func.attr in {"get", "getlist"}:
            if first in _HEADERS:
                self._facts.schemes.add(_HEADERS[first])
            elif first not in _NOT_TOLD and _is_args(func.value, scope):
                self._facts.query.setdefault(first, "string")
            return
        kind = infer(func.value, scope)
        if kind is query_words.Query and func.attr in _QUERY_TYPES:
            self._facts.query[first] = _QUERY_TYPES[func.attr]
            if func.attr == "require":
                self._facts.required_query.add(first)
        elif kind is Terms:
            self._facts.search_keys.add(first)

    def _look(self, node: ast.Subscript | ast.Compare, scope: Scope) -> None:
        """`request.args["x"]` and `"x" in request.args`."""
        name, where = (node.slice, node.value) if isinstance(node, ast.Subscript) else (node.left, node.comparators[0])
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and _is_args(where, scope):
            self._facts.query.setdefault(name.value, "string")

    def _service(self, function: FunctionType) -> None:
        module = function.__globals__["__name__"]
        if function in _GATES:
            self._facts.schemes.add("CoderSessionToken")
        elif module.startswith("coder.coderd.services.") and function.__doc__ and ".auth" not in module:
            self._facts.service = function
        self._facts.search_keys |= search_keys(function)


@functools.cache
def search_keys(function: FunctionType, depth: int = 3) -> frozenset[str]:
    """The keys of a search a service knows: it and what it calls, `depth` calls deep."""
    node = node_of(function)
    if node is None or depth == 0:
        return frozenset()
    scope, found = scope_of(function), set()
    for item in own_nodes(node):
        if not isinstance(item, ast.Call):
            continue
        if scope.resolve(item.func) is parse_query:
            found.add(_constant(item.args[1], scope))
        elif isinstance(item.func, ast.Attribute) and item.func.attr in _TERM_WORDS and item.args:
            if infer(item.func.value, scope) is Terms:
                found |= set(_values(item.args[0], scope))
        elif len(item.args) > 1 and infer(item.args[0], scope) is Terms:
            found.add(_constant(item.args[1], scope))
        for target in targets(item, scope):
            found |= search_keys(target, depth - 1)
    return frozenset(key for key in found if isinstance(key, str) and key.isprintable())


_WORDS: dict[Any, Any] = {
    json_words.reply: _Reader.reply,
    json_words.message: _Reader.message,
    json_words.no_content: _Reader.no_content,
    json_words.read_body: _Reader.read_body,
    json_words.read_bytes: _Reader.read_bytes,
    json.loads: _Reader.loose_json,
    parse_qs: _Reader.form,
    parse_query: _Reader.search,
    Terms: _Reader.terms,
    query_words.path_uuid: _Reader.path_uuid,
    quart.Response: _Reader.response,
    quart.redirect: _Reader.redirect,
    streams.sse: _Reader.events,
}


def _hashable(value: Any) -> bool:
    return inspect.isfunction(value) or inspect.isclass(value)


def _argument(call: ast.Call, index: int, name: str) -> ast.expr | None:
    for item in call.keywords:
        if item.arg == name:
            return item.value
    return call.args[index] if len(call.args) > index else None


def _is_args(node: ast.expr, scope: Scope) -> bool:
    """Whether this is the query of the current request, or a name for it."""
    if isinstance(node, ast.Name) and node.id in scope.bound:
        return _is_args(*scope.bound[node.id])
    if isinstance(node, ast.Name) and node.id in scope.assigned:
        return any(how == "is" and _is_args(value, scope) for how, value in scope.assigned[node.id])
    if isinstance(node, ast.Attribute) and node.attr == "args" and isinstance(node.value, ast.Name):
        return node.value.id in {"request", "websocket", "here"}
    return False


def _values(node: ast.expr, scope: Scope) -> list[Any]:
    """The constants an expression can be; empty where that cannot be told."""
    if isinstance(node, ast.IfExp):
        return _values(node.body, scope) + _values(node.orelse, scope)
    if isinstance(node, ast.Name):
        if node.id in scope.bound:
            expression, outer = scope.bound[node.id]
            return _values(expression, outer) if expression is not node else []
        if node.id in scope.assigned:
            return [found for how, value in scope.assigned[node.id] for found in _assigned_values(how, value, scope)]
        found = scope.look_up(node.id)
        return [found] if isinstance(found, str | int | tuple | list) else []
    if isinstance(node, ast.Constant):
        return [node.value]
    if isinstance(node, ast.Tuple | ast.List) and all(isinstance(item, ast.Constant) for item in node.elts):
        return [tuple(item.value for item in node.elts if isinstance(item, ast.Constant))]
    return []


def _assigned_values(how: str, value: ast.expr, scope: Scope) -> list[Any]:
    found = _values(value, scope)
    if how == "is":
        return found
    return [item for group in found if isinstance(group, tuple) for item in group] if how == "element" else []


def _constant(node: ast.expr, scope: Scope) -> Any:
    return next(iter(_values(node, scope)), None)


def _statuses(node: ast.expr | None, scope: Scope, default: int) -> list[int]:
    if node is None:
        return [default]
    return [value for value in _values(node, scope) if isinstance(value, int)] or []


def _texts(node: ast.expr, scope: Scope) -> list[str]:
    return [value for value in _values(node, scope) if isinstance(value, str)] or ["application/octet-stream"]
