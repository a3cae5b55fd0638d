"""Every list, map and text of every message a server receives, generated from the descriptors: an excess is rejected
before a handler sees it, by an error that names the field, and the link continues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message

from coder.rpc import calls, request_limits
from coder.rpc.calls import Bidi, Handlers, ServerCall, Unary, decode_request
from coder.rpc.drpc import MAX_PACKET
from coder.rpc.errors import RpcError
from coder.rpc.message_limits import fields_below
from coder.rpc.proto import agent_pb2, provisionerd_pb2, tailnet_pb2
from coder.rpc.request_limits import MAX_TOTAL_ELEMENTS, REQUEST_LIMITS
from coder.rpc.session import Session
from tests.kit.api import id_fields
from tests.kit.recordings.wire_recordings import load_lines, message_type
from tests.unit.rpc.test_session import connected

Path = tuple[Any, ...]
"List of FieldDescriptors."


def _paths(kind: Any) -> Iterator[Path]:
    """Return the shortest path to each field of a message."""
    seen: set[str] = set()
    waiting: list[tuple[Any, Path]] = [(kind, ())]
    for one, before in waiting:
        for field in one.fields:
            if field.full_name in seen:
                continue
            seen.add(field.full_name)
            yield (*before, field)
            inner = _inner(field)
            if inner is not None:
                waiting.append((inner, (*before, field)))


def _inner(field: Any) -> Any:
    inner = field.message_type
    return inner.fields_by_name["value"].message_type if _is_map(field) else inner


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _around(root: Any, path: Path) -> Any:
    """Return the message that holds the last field of the path."""
    for field in path[:-1]:
        inner = getattr(root, field.name)
        inner.SetInParent() if not field.is_repeated else None
        root = inner[_key(field, 0)] if _is_map(field) else inner.add() if field.is_repeated else inner
    return root


def _key(field: Any, number: int) -> Any:
    return str(number) if field.message_type.fields_by_name["key"].type == FieldDescriptor.TYPE_STRING else number


def _put_elements(root: Any, path: Path, count: int) -> None:
    field, inner = path[-1], getattr(_around(root, path), path[-1].name)
    if _is_map(field):
        for number in range(count):
            if _inner(field) is None:
                text = field.message_type.fields_by_name["value"].type == FieldDescriptor.TYPE_STRING
                inner[_key(field, number)] = "" if text else 0
            else:
                inner[_key(field, number)].SetInParent()
    elif field.message_type is not None:
        inner.MergeFrom([field.message_type._concrete_class()] * count)
    else:
        texts: dict[int, Any] = {FieldDescriptor.TYPE_STRING: "", FieldDescriptor.TYPE_BYTES: b""}
        inner.extend([texts.get(field.type, 0)] * count)


def _put_text(root: Any, path: Path, size: int, *, key: bool = False) -> None:
    field, around = path[-1], _around(root, path)
    # Two bytes each and one more: the limit does not count characters.
    text: Any = "é" * (size // 2) + "x" * (size % 2)
    if _is_map(field):
        inner = getattr(around, field.name)
        if not key:
            inner[_key(field, 0)] = text
        elif _inner(field) is None:
            as_text = field.message_type.fields_by_name["value"].type == FieldDescriptor.TYPE_STRING
            inner[text] = "" if as_text else 0
        else:
            inner[text].SetInParent()
        return
    text = text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
    getattr(around, field.name).append(text) if field.is_repeated else setattr(around, field.name, text)


def _cases() -> Iterator[tuple[str, Path, str, int]]:
    """Yield (method, path, tested part, limit)."""
    for name, method in id_fields.methods().items():
        for path in _paths(method.input_type):
            limit = REQUEST_LIMITS.of(path[-1])
            found = (("elements", limit.elements), ("text", limit.size), ("key", limit.key_size))
            yield from ((name, path, what, most) for what, most in found if 0 < most < MAX_PACKET)


def _filled(name: str, path: Path, what: str, count: int) -> Message:
    root = id_fields.request_of(name)
    if what == "elements":
        _put_elements(root, path, count)
    else:
        _put_text(root, path, count, key=what == "key")
    return root


async def _refusal(message: Message) -> str:
    try:
        read = await decode_request(type(message), message.SerializeToString(), REQUEST_LIMITS)
    except RpcError as error:
        return error.text
    assert read == message
    return ""


async def test_every_field_limit_is_exact() -> None:
    cases = list(_cases())
    assert len(cases) > 200
    wrong = []
    for name, path, what, most in cases:
        where = f"{name} {'.'.join(field.name for field in path)} ({what})"
        if refusal := await _refusal(_filled(name, path, what, most)):
            wrong.append(f"{where}: {most} refused: {refusal}")
        refusal = await _refusal(_filled(name, path, what, most + 1))
        if path[-1].full_name not in refusal or str(most) not in refusal:
            wrong.append(f"{where}: {most + 1}: {refusal or 'taken'}")
    assert not wrong, "\n".join(wrong)


async def test_list_elements_count_together() -> None:
    """4096 resources with 4096 agents each would be 16 million rows."""
    request = provisionerd_pb2.CompletedJob()
    for _ in range(33):
        resource = request.workspace_build.resources.add()
        resource.agents.MergeFrom([type(resource.agents.add())()] * 1000)
    assert str(MAX_TOTAL_ELEMENTS) in await _refusal(request)


async def test_separate_lists_occur_once() -> None:
    for method in id_fields.methods().values():
        for path in _paths(method.input_type):
            if REQUEST_LIMITS.of(path[-1]).is_apart:
                assert not any(field.is_repeated for field in path[:-1]), path[-1].full_name


def test_rows_are_fields_of_requests() -> None:
    known: set[str] = set()
    for method in id_fields.methods().values():
        field: Any
        for field in fields_below(method.input_type):
            known.add(field.full_name)
            if _is_map(field):
                known |= {one.full_name for one in field.message_type.fields}
    rows = request_limits._ELEMENTS.keys() | request_limits._SIZES.keys()
    assert not rows - known


def test_recorded_messages_fit_easily() -> None:
    """Genuine recorded messages use at most a quarter of each limit."""
    heard = load_lines("proto_messages_agent_tailnet.jsonl") + load_lines("proto_messages_provisioner.jsonl")
    asked = {method.input_type.full_name for method in id_fields.methods().values()}
    messages = [
        message_type(one["type"]).FromString(bytes.fromhex(one["hex"])) for one in heard if one["type"] in asked
    ]
    assert len(messages) > 20
    for message in messages:
        assert not REQUEST_LIMITS.explain_excess(message)
        for limit, value in _leaves(message):
            if limit.elements:
                assert len(value) * 4 <= limit.elements, limit.name
            for text in value if limit.elements else [value]:
                size = len(text.encode() if isinstance(text, str) else text) if limit.size and text else 0
                assert size * 4 <= limit.size, limit.name


def _leaves(message: Message) -> Iterator[tuple[Any, Any]]:
    for field, value in message.ListFields():
        limit = REQUEST_LIMITS.of(field)
        if limit.has_messages and not limit.elements:
            yield from _leaves(value)
            continue
        yield limit, value.values() if limit.is_map else value
        if limit.has_messages:
            for one in value.values() if limit.is_map else value:
                yield from _leaves(one)


# ---- over a link


def _handlers(seen: list[str]) -> Handlers:
    async def answer(request: Message) -> Message:
        seen.append(request.DESCRIPTOR.full_name)
        return Empty()

    async def answer_each(call: ServerCall[Any, Any]) -> None:
        async for request in call:
            seen.append(request.DESCRIPTOR.full_name)

    return {
        _full(name): Bidi(answer_each, type(id_fields.request_of(name)))
        if method.client_streaming
        else Unary(answer, type(id_fields.request_of(name)))
        for name, method in id_fields.methods().items()
    }


def _full(name: str) -> str:
    method = id_fields.methods()[name]
    return f"/{method.containing_service.full_name}/{method.name}"


async def _say(session: Session, name: str, message: Message) -> None:
    if not id_fields.methods()[name].client_streaming:
        await session.call(_full(name), message, Empty)
        return
    async with session.open_stream(_full(name), type(message), Empty) as stream:
        await stream.send(message)
        await stream.close_send()
        async for _ in stream:
            pass


async def test_excess_is_reported_to_peer() -> None:
    smallest = {name: (path, what, most) for name, path, what, most in sorted(_cases(), key=lambda one: -one[3])}
    seen: list[str] = []
    async with connected(_handlers(seen)) as (client, _, _):
        for name, (path, what, most) in smallest.items():
            with pytest.raises(RpcError, match=path[-1].full_name):
                await _say(client, name, _filled(name, path, what, most + 1))
            assert not seen
            await _say(client, name, _filled(name, path, what, most))
            assert seen.pop() == id_fields.methods()[name].input_type.full_name


async def test_large_messages_use_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    run_sync = trio.to_thread.run_sync

    async def counted(function: Any, kind: Any, data: bytes, *more: Any, **options: Any) -> Any:
        taken.append(len(data))
        return await run_sync(function, kind, data, *more, **options)

    monkeypatch.setattr(trio.to_thread, "run_sync", counted)
    small, large = agent_pb2.BatchCreateLogsRequest(), agent_pb2.BatchCreateLogsRequest()
    small.logs.add(output="x" * 1000)
    large.logs.add(output="x" * calls.LARGE_REQUEST)
    assert not await _refusal(small)
    assert not taken
    assert not await _refusal(large)
    assert taken == [len(large.SerializeToString())]


# ---- largest messages of genuine programs


def _large_plan() -> Message:
    request = provisionerd_pb2.CompletedJob(job_id="x")
    for number in range(5000):
        resource = request.workspace_build.resources.add(
            name=f"r[{number}]", type="null_resource", module_path="module.a"
        )
        resource.metadata.add(key="k", value="v")
        request.workspace_build.timings.add(resource=f"null_resource.r[{number}]", action="create", stage="apply")
    request.workspace_build.state = b"{" * (2 << 20)
    return request


def _large_import() -> Message:
    request = provisionerd_pb2.CompletedJob(job_id="x")
    for number in range(5000):
        request.template_import.start_resources.add(name=f"r[{number}]", type="null_resource")
        request.template_import.stop_resources.add(name=f"r[{number}]", type="null_resource")
    return request


def _node_behind_a_proxy() -> Message:
    """The program forwards the answer it got in place of an upgrade: the whole page."""
    node = tailnet_pb2.Node(id=1, preferred_derp=999)
    for region in range(20):
        node.derp_forced_websocket[region] = "GET failed with status code 403: " + "<p>blocked by policy</p>" * 1000
    return tailnet_pb2.CoordinateRequest(update_self=tailnet_pb2.CoordinateRequest.UpdateSelf(node=node))


def _node_of_many_addresses() -> Message:
    node = tailnet_pb2.Node(id=1, endpoints=[f"10.{number // 250}.0.{number % 250}:41641" for number in range(1000)])
    return tailnet_pb2.CoordinateRequest(update_self=tailnet_pb2.CoordinateRequest.UpdateSelf(node=node))


def _full_log_batch() -> Message:
    return agent_pb2.BatchCreateLogsRequest(logs=[agent_pb2.Log(output="")] * ((1 << 20) // 21))


@pytest.mark.parametrize(
    "make", [_large_plan, _large_import, _node_behind_a_proxy, _node_of_many_addresses, _full_log_batch]
)
async def test_largest_genuine_messages_pass(make: Callable[[], Message]) -> None:
    message = make()
    assert message.ByteSize() <= MAX_PACKET
    assert not await _refusal(message)
