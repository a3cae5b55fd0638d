"""Interpreter of the PowerShell that our scripts use: the statements are executed, the effects are a `Host`'s.

It exists because PowerShell itself cannot be had here. The text is parsed by the grammar of tree-sitter; a construct or
a command that this module does not know is an error, so that a script cannot pass by being misread.
"""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol

import tree_sitter
import tree_sitter_powershell as grammar

_SWITCHES = frozenset({"usebasicparsing", "passthru", "wait", "nonewwindow"})
_PREFIXES = {"useb": "usebasicparsing"}
_ALIASES = {"iwr": "invoke-webrequest", "iex": "invoke-expression"}


class Host(Protocol):
    """Machine that a script runs on. File names are those of Windows."""

    def fetch(self, url: str) -> tuple[int, bytes]: ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, data: bytes) -> None: ...

    def names(self) -> list[str]: ...

    def move(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def run(self, path: str, arguments: list[str], env: dict[str, str]) -> list[str]: ...

    def start(self, path: str, arguments: list[str], env: dict[str, str]) -> Any: ...

    def sleep(self, seconds: int) -> None: ...


class PowerShellError(Exception):
    """Terminating error; `response` is the web server's, if there was one."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        response = SimpleNamespace(StatusCode=status) if status else None
        self.record = SimpleNamespace(Exception=SimpleNamespace(Message=message, Response=response))


class _Break(Exception):  # noqa: N818 - it leaves a loop
    pass


@dataclass
class Session:
    """Variables and output of a running shell."""

    host: Host
    env: dict[str, str]
    output: list[str] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)
    statics: dict[str, Any] = field(default_factory=dict)
    traps: list[tree_sitter.Node] = field(default_factory=list)

    def execute(self, text: str) -> None:
        """Execute a script. Raises PowerShellError when it fails and has no trap."""
        tree = tree_sitter.Parser(tree_sitter.Language(grammar.language())).parse(text.encode())
        if tree.root_node.has_error:
            raise SyntaxError(text[:200])
        try:
            _block(self, tree.root_node)
        except PowerShellError as error:
            if not self.traps:
                raise
            self.variables["_"] = error.record
            trap = self.traps.pop()
            _block(self, _only(trap, "statement_block"))


def _text(node: tree_sitter.Node | None) -> str:
    return (node.text or b"").decode() if node is not None else ""


def _named(node: tree_sitter.Node) -> list[tree_sitter.Node]:
    return [child for child in node.children if child.is_named and child.type != "comment"]


def _only(node: tree_sitter.Node, kind: str) -> tree_sitter.Node:
    return next(child for child in node.children if child.type == kind)


# ---- statements


def _block(session: Session, node: tree_sitter.Node) -> list[Any]:
    """Execute statements and return what they put out."""
    out: list[Any] = []
    for child in _named(node):
        kind = child.type
        if kind in {"statement_list", "statement_block"}:
            out += _block(session, child)
        elif kind == "pipeline":
            out += _pipeline(session, child)
        elif kind == "trap_statement":
            session.traps.append(child)
        else:
            out += _STATEMENTS[kind](session, child)
    return out


def _if(session: Session, node: tree_sitter.Node) -> list[Any]:
    condition, then, *rest = _named(node)
    if _truth(_single(_pipeline(session, condition))):
        return _block(session, then)
    return _block(session, rest[0]) if rest else []


def _while(session: Session, node: tree_sitter.Node) -> list[Any]:
    condition, body = _named(node)
    try:
        while _truth(_single(_pipeline(session, _named(condition)[0]))):
            _block(session, body)
    except _Break:
        pass
    return []


def _try(session: Session, node: tree_sitter.Node) -> list[Any]:
    try:
        return _block(session, _only(node, "statement_block"))
    except PowerShellError as error:
        session.variables["_"] = error.record
        return _block(session, _only(_named(_only(node, "catch_clauses"))[0], "statement_block"))


def _flow(session: Session, node: tree_sitter.Node) -> list[Any]:
    word = _text(node.children[0]).lower()
    if word == "break":
        raise _Break
    if word == "throw":
        raise PowerShellError(str(_single(_pipeline(session, _named(node)[0]))))
    raise NotImplementedError(word)


_STATEMENTS: dict[str, Callable[[Session, tree_sitter.Node], list[Any]]] = {
    "empty_statement": lambda _session, _node: [],
    "if_statement": _if,
    "while_statement": _while,
    "try_statement": _try,
    "flow_control_statement": _flow,
}


# ---- pipelines and commands


def _pipeline(session: Session, node: tree_sitter.Node) -> list[Any]:
    """Return the output; that of a statement goes to the caller's block."""
    (inner,) = _named(node)
    if inner.type == "assignment_expression":
        target, _, value = _named(inner)
        _assign(session, target, _single(_pipeline(session, value)))
        return []
    stream: list[Any] = []
    for number, part in enumerate(_named(inner)):
        if part.type == "command":
            stream = _command(session, part, stream, piped=number > 0)
        else:
            stream = [_value(session, part)]
    return stream


def _command(session: Session, node: tree_sitter.Node, stream: list[Any], *, piped: bool) -> list[Any]:
    parts = {child.type: child for child in _named(node)}
    elements = _named(parts["command_elements"]) if "command_elements" in parts else []
    elements = [each for each in elements if each.type != "command_argument_sep"]
    if "command_invokation_operator" in parts:
        program = str(_value(session, _named(parts["command_name_expr"])[0]))
        return [*session.host.run(program, [_text(each) for each in elements], _environment(session))]
    given, positional = _arguments(session, elements)
    name = _text(parts["command_name"]).lower()
    name = _ALIASES.get(name, name)
    return _COMMANDS[name](_Call(session, given, positional, stream if piped else []))


def _arguments(session: Session, elements: list[tree_sitter.Node]) -> tuple[dict[str, Any], list[Any]]:
    given: dict[str, Any] = {}
    positional: list[Any] = []
    waiting = ""
    for element in elements:
        if element.type == "command_parameter":
            name = _text(element).lstrip("-").lower()
            name = _PREFIXES.get(name, name)
            given[name] = True
            waiting = "" if name in _SWITCHES else name
            continue
        value = _text(element) if element.type == "generic_token" else _value(session, element)
        if waiting:
            given[waiting], waiting = value, ""
        else:
            positional.append(value)
    return given, positional


@dataclass
class _Call:
    session: Session
    given: dict[str, Any]
    positional: list[Any]
    stream: list[Any]

    def get(self, name: str, position: int = 0) -> Any:
        return self.given[name] if name in self.given else self.positional[position]

    @property
    def host(self) -> Host:
        return self.session.host


def _environment(session: Session) -> dict[str, str]:
    return dict(session.env)


def _write_output(call: _Call) -> list[Any]:
    call.session.output.append(str(call.positional[0]))
    return []


def _write_error(call: _Call) -> list[Any]:
    call.session.output.append(f"error record: {call.given['errorrecord'].Exception.Message}")
    return []


def _invoke_web_request(call: _Call) -> list[Any]:
    status, body = call.host.fetch(str(call.get("uri")))
    if status != 200:
        raise PowerShellError(f"The remote server returned an error: ({status}).", status)
    if "outfile" not in call.given:
        return [body.decode()]
    _guarded(lambda: call.host.write(call.given["outfile"], body))
    return []


def _guarded(change: Callable[[], None]) -> None:
    try:
        change()
    except OSError as error:
        raise PowerShellError(str(error.strerror or error)) from error


def _remove_item(call: _Call) -> list[Any]:
    for name in fnmatch.filter(call.host.names(), str(call.get("path")).replace("[", "[[]")):
        try:
            call.host.remove(name)
        except OSError as error:
            if call.given.get("erroraction") != "SilentlyContinue":
                raise PowerShellError(str(error)) from error
    return []


def _move_item(call: _Call) -> list[Any]:
    _guarded(lambda: call.host.move(call.get("path"), call.get("destination", 1)))
    return []


def _start_process(call: _Call) -> list[Any]:
    process = call.host.start(call.get("filepath"), [str(call.given["argumentlist"])], _environment(call.session))
    return [process] if "passthru" in call.given else []


def _sleep(call: _Call) -> list[Any]:
    call.host.sleep(int(call.get("seconds")))
    return []


def _invoke_expression(call: _Call) -> list[Any]:
    call.session.execute(str(call.stream[0] if call.stream else call.positional[0]))
    return []


_COMMANDS: dict[str, Callable[[_Call], list[Any]]] = {
    "write-output": _write_output,
    "write-error": _write_error,
    "invoke-webrequest": _invoke_web_request,
    "invoke-expression": _invoke_expression,
    "join-path": lambda call: ["\\".join(str(part).rstrip("\\") for part in call.positional)],
    "get-content": lambda call: call.host.read(call.get("path")).decode().splitlines()[: call.given["totalcount"]],
    "get-filehash": lambda call: [
        SimpleNamespace(Hash=hashlib.sha256(call.host.read(call.get("path"))).hexdigest().upper())
    ],
    "test-path": lambda call: [call.get("path") in call.host.names()],
    "remove-item": _remove_item,
    "move-item": _move_item,
    "get-random": lambda _: [4],
    "get-command": lambda _: [],
    "get-service": lambda _: [],
    "select-object": lambda call: call.stream[: call.given["first"]],
    "start-process": _start_process,
    "start-sleep": _sleep,
}


# ---- expressions


def _single(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else (values or None)


def _truth(value: Any) -> bool:
    return bool(value)


def _assign(session: Session, node: tree_sitter.Node, value: Any) -> None:
    while node.type not in {"variable", "member_access", "element_access"}:
        (node,) = _named(node)
    if node.type == "member_access":
        target, member = _named(node)
        if target.type == "type_literal":
            session.statics[f"{_text(target)}::{_text(member)}"] = value
        else:
            setattr(_value(session, target), _text(member), value)
        return
    name = _text(node).lstrip("$")
    if name.lower().startswith("env:"):
        session.env[name[4:]] = str(value)
    else:
        session.variables[name.lower()] = value


def _value(session: Session, node: tree_sitter.Node) -> Any:
    if node.type in _VALUES:
        return _VALUES[node.type](session, node)
    children = _named(node)
    if len(children) == 1:
        return _value(session, children[0])
    raise NotImplementedError(f"{node.type}: {_text(node)}")


def _variable(session: Session, node: tree_sitter.Node) -> Any:
    name = _text(node).lstrip("$").strip("{}").lower()
    if name.startswith("env:"):
        return next((value for key, value in session.env.items() if key.lower() == name[4:]), None)
    return {"true": True, "false": False, "null": None}.get(name, session.variables.get(name))


def _string(session: Session, node: tree_sitter.Node) -> str:
    (inner,) = _named(node)
    if inner.type != "expandable_string_literal":
        return _text(inner)[1:-1].replace("''", "'")
    raw, start = inner.text or b"", inner.start_byte
    out, at = "", 1
    for child in inner.children:
        if child.type in {"variable", "sub_expression"}:
            out += _unescaped(raw[at : child.start_byte - start].decode())
            out += _shown(_value(session, child))
            at = child.end_byte - start
    return out + _unescaped(raw[at:].decode().rstrip().removesuffix('"'))


def _unescaped(text: str) -> str:
    return text.replace('`"', '"')


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


def _binary(session: Session, node: tree_sitter.Node) -> Any:
    parts = [child for child in node.children if child.type != "comment"]
    if len(parts) == 1:
        return _value(session, parts[0])
    left, operator, right = parts
    return _OPERATORS[_text(operator).lower()](_value(session, left), _value(session, right))


def _fold(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "-eq": lambda left, right: _fold(left) == _fold(right),
    "-ne": lambda left, right: _fold(left) != _fold(right),
    "-like": lambda left, right: fnmatch.fnmatchcase(_fold(_shown(left)), _fold(right)),
    "-notlike": lambda left, right: not fnmatch.fnmatchcase(_fold(_shown(left)), _fold(right)),
    "-split": lambda left, right: str(left).split(right),
    "-bor": lambda left, right: left | right,
    "-and": lambda left, right: _truth(left) and _truth(right),
}


def _member(session: Session, node: tree_sitter.Node) -> Any:
    target, name = _named(node)
    if target.type == "type_literal":
        return session.statics[f"{_text(target)}::{_text(name)}"]
    return getattr(_value(session, target), _text(name), None)


def _invocation(session: Session, node: tree_sitter.Node) -> Any:
    target, name, *arguments = _named(node)
    values = [_value(session, each) for item in arguments for each in _leaves(item)]
    return getattr(_value(session, target), _text(name))(*values)


def _leaves(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    for child in _named(node):
        if child.type in {"argument_list", "argument_expression_list"}:
            yield from _leaves(child)
        else:
            yield child


def _element(session: Session, node: tree_sitter.Node) -> Any:
    target, index = _named(node)
    return _value(session, target)[_value(session, index)]


_VALUES: dict[str, Callable[[Session, tree_sitter.Node], Any]] = {
    "variable": _variable,
    "string_literal": _string,
    "decimal_integer_literal": lambda _, node: int(_text(node)),
    "member_access": _member,
    "invokation_expression": _invocation,
    "element_access": _element,
    "parenthesized_expression": lambda session, node: _single(_pipeline(session, _named(node)[0])),
    "sub_expression": lambda session, node: _single(_block(session, node)),
    "pipeline": lambda session, node: _single(_pipeline(session, node)),
    "cast_expression": lambda session, node: int(_value(session, _named(node)[-1]) or 0),
    **dict.fromkeys(
        [
            f"{name}{kind}_expression"
            for name in ("logical", "bitwise", "comparison", "additive")
            for kind in ("", "_argument")
        ],
        _binary,
    ),
}
