"""The sandbox with real processes: limits end the call and nothing else; work is bounded for every call."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from coder.coderd.services.foundation import sandbox
from coder.coderd.services.foundation.sandbox import Documents, NewFile, Sandbox, SandboxFailedError, TooMuchWorkError
from coder.coderd.services.templates.sandbox_worker import CALLS
from tests.kit.provisioners.scripted_provisioner import tar

BASE: dict[str, Any] = {"inputs": {}, "owner": {}, "variables": {}}
MORE: Mapping[str, dict[str, Any]] = {
    "form": {"number": 1},
    "build": {"given": {"build": {}, "previous": {}, "preset": {}, "first_build": True}},
    "version": {},
}
SHOWN = 'data "coder_parameter" "x" {\n  name = "x"\n  type = "string"\n  default = %s\n}\n'
TAGGED = 'data "coder_workspace_tags" "t" {\n  tags = { zone = %s }\n}\n'
MANY = "[for a in range(1024) : [for b in range(1024) : a]]"
GREEDY = {
    "globs in globs": f'tostring(length(fileset(".", "{"{*," * 60}*{"}" * 60}")))',
    "stars": f'tostring(length(fileset(".", "{"*a" * 400}b")))',
    "double stars": f'tostring(length(fileset(".", "{"**/" * 200}x")))',
    "regex": f'tostring(length(regexall("{"(a*)*" * 30}b", join("", [for i in range(1024) : "aaaaaaaaaaaa"]))))',
    "deep json": 'jsonencode(jsondecode(file("deep.json")))',
    "wide json": 'tostring(length(jsondecode(file("wide.json"))))',
    "deep yaml": 'jsonencode(yamldecode(file("deep.json")))',
    "large yaml": 'tostring(length(yamldecode(file("large.yaml"))))',
    "aliases": 'jsonencode(yamldecode(file("aliases.yaml")))',
    "deep brackets": "(" * 5000 + "1" + ")" * 5000,
    "deep lists": "jsonencode(" + "[" * 3000 + "]" * 3000 + ")",
    "loops": f"jsonencode({MANY})",
    "long text": 'join("", [for i in range(1024) : join("", [for j in range(1024) : "aaaaaaaaaaaaaaaaaaaaaaaaaaa"])])',
    "remainders": "tostring(" + "9" * 50_000 + " % 7)",
    "big numbers": "tostring(" + "99999999999999999 * " * 2000 + "1)",
    "powers": 'format("%0999999999d", 1)',
    "widths": 'format("%-999999999s", "a")',
    "indents": 'indent(999999999, "a\\nb\\nc")',
    "products": "jsonencode(setproduct(range(100), range(100), range(100)))",
    "ranges": "jsonencode(range(0, 1000000000, 1))",
    "subnets": 'jsonencode(cidrsubnets("::/0", [for i in range(1024) : 128]...))',
    "chunks": 'jsonencode(chunklist(split("", file("large.yaml")), 1))',
    "distinct": "jsonencode(distinct([for i in range(1024) : [for j in range(200) : i]]))",
    "splits": 'jsonencode(split("", file("large.yaml")))',
    "replace": 'replace(file("large.yaml"), "/.*/", "$0$0$0$0")',
    "itself": "local.a",
    "characters": 'tostring(length(join("", [for i in range(1024) : "\\u0301\\u0301\\u0301\\u0301\\u0301\\u0301"])))',
}
FILES = {
    "deep.json": "[" * 200_000 + "]" * 200_000,
    "wide.json": "[" + ",".join("{}" for _ in range(300_000)) + "]",
    "large.yaml": "\n".join(f"key{number}: [1, two, {{three: 4}}]" for number in range(25_000)),
    "aliases.yaml": "a: &a [x]\n"
    + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 10)}]\n" for i in range(20)),
    "locals.tf": "locals {\n  a = [local.b, local.b]\n  b = [local.c, local.c]\n  c = [local.a, local.a]\n}\n",
    **{f"dir{number}/" + "a" * 100: "" for number in range(50)},
}


@asynccontextmanager
async def opened() -> AsyncIterator[Sandbox]:
    async with trio.open_nursery() as nursery:
        sandbox = Sandbox(SimpleNamespace(nursery=nursery))  # type: ignore[arg-type]
        sandbox.start(nursery)
        yield sandbox
        nursery.cancel_scope.cancel()


def documents(name: str, files: Mapping[str, str]) -> Documents:
    async def load(new_file: NewFile) -> None:
        new_file().write(tar(files))

    return Documents(name, load)


@pytest.mark.parametrize(
    "call", ["form", *(pytest.param(name, marks=pytest.mark.soak) for name in sorted(MORE.keys() - {"form"}))]
)
async def test_greedy_templates_are_bounded(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result within the limits, or a refusal. The plain template that follows gets its result."""
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 1)
    plain = documents("plain", {"main.tf": SHOWN % '"graz"'})
    async with opened() as box:
        for name, expression in GREEDY.items():
            files = {**FILES, "main.tf": SHOWN % expression + TAGGED % f"try({expression}, 1)"}
            try:
                await box.call(call, {**BASE, **MORE[call]}, documents(name, files))
            except TooMuchWorkError as error:
                assert "more" in error.message, name
            view: Any = await box.call("form", {**BASE, **MORE["form"]}, plain)
            assert [item["value"]["value"] for item in view["parameters"]] == ["graz"], name


@pytest.mark.parametrize("kind", ["yaml", "json", "env"])
async def test_secrets_are_bounded_too(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 1)
    async with opened() as box:
        for content in (*FILES.values(), "a: b\n" * 100_000, '{"a": ' * 100_000, "x"):
            try:
                result = await box.call("secrets", {"format": kind, "content": content})
                assert isinstance(result, str | dict)
            except TooMuchWorkError as error:
                assert "more" in error.message
        good = {"yaml": "a: b", "json": '{"a": "b"}', "env": "a=b"}[kind]
        assert await box.call("secrets", {"format": kind, "content": good}) == {"a": "b"}


async def test_worker_gets_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """No secret of the server's environment, no writable file."""
    monkeypatch.setenv("CODER_PG_CONNECTION_URL", "postgres://secret")
    async with opened() as box:
        await box.call("secrets", {"format": "env", "content": "a=b"})
        (worker,) = box._all
        process = trio.Path(f"/proc/{worker._process.pid}")
        environment = await (process / "environ").read_text()
        assert "secret" not in environment
        limits = await (process / "limits").read_text()
        assert any(line.split()[:5] == ["Max", "file", "size", "0", "0"] for line in limits.splitlines())


async def test_caller_has_one_call() -> None:
    """A caller's second call begins after the first; another caller's does not wait for it."""
    order = []
    async with opened() as box:
        gate = trio.Event()

        async def slow(new_file: NewFile) -> None:
            await gate.wait()
            new_file().write(tar({"main.tf": SHOWN % '"x"'}))

        async def ask(who: str, what: Documents) -> None:
            await box.call("form", {**BASE, **MORE["form"]}, what, caller=who)
            order.append(who)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "eve", Documents("slow", slow))
            while not box._all:
                await trio.sleep(0)
            nursery.start_soon(ask, "eve", Documents("slow", slow))
            nursery.start_soon(ask, "ada", documents("quick", {"main.tf": ""}))
            while not order:
                await trio.sleep(0.01)
            gate.set()
    assert order == ["ada", "eve", "eve"]
    assert box._callers == {}


async def test_cancelled_call_keeps_process() -> None:
    """A form is closed during its evaluation, repeatedly: the process keeps its cached templates."""
    loads = []
    async with opened() as box:
        gate = trio.Event()

        async def slow(new_file: NewFile) -> None:
            loads.append(trio.current_time())
            await gate.wait()
            new_file().write(tar({"main.tf": SHOWN % '"graz"'}))

        async def ask() -> Any:
            return await box.call("form", {**BASE, **MORE["form"]}, Documents("slow", slow), caller="eve")

        async with trio.open_nursery() as nursery:
            for _ in range(3):  # one is in progress, the others have not begun
                nursery.start_soon(ask)
            while not loads:
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        (worker,) = box._all
        gate.set()
        view = await ask()
        assert [item["value"]["value"] for item in view["parameters"]] == ["graz"]
        assert box._all == {worker} and len(loads) == 1
        assert box._callers == {}


async def test_load_error_reaches_caller() -> None:
    async def fail(_new_file: NewFile) -> None:
        raise LookupError("gone")

    async with opened() as box:
        with pytest.raises(LookupError, match="gone"):
            await box.call("form", {**BASE, **MORE["form"]}, Documents("gone", fail), caller="eve")
        assert box._callers == {}


def test_every_call_has_greedy_cases() -> None:
    assert set(CALLS) == {*MORE, "secrets"}


async def test_server_errors_blame_server() -> None:
    """An unexpected error in the worker, and a process that exits or is killed from outside."""
    plain = documents("plain", {"main.tf": SHOWN % '"graz"'})
    async with opened() as box:
        with pytest.raises(SandboxFailedError, match="error in the server"):
            await box.call("form", {**BASE}, plain)  # not a number: a call that the server never makes
        (worker,) = box._all
        view: Any = await box.call("form", {**BASE, **MORE["form"]}, plain)
        assert view["parameters"] and box._all == {worker}, "the process keeps running"
        for status, kind in ((signal.SIGTERM, TooMuchWorkError), (signal.SIGKILL, TooMuchWorkError)):

            async def end(new_file: NewFile, status: int = status) -> None:
                new_file().write(tar({"main.tf": ""}))
                (worker,) = box._all
                worker._process.send_signal(status)
                await worker._process.wait()

            with pytest.raises(kind):
                await box.call("form", {**BASE, **MORE["form"]}, Documents(f"ended by {status}", end))
            await box.call("form", {**BASE, **MORE["form"]}, plain)
        (worker,) = box._all
        await worker._sink.send_all(b"\0\0\0\1{")  # a frame that is not JSON ends it with a traceback
        with pytest.raises(SandboxFailedError):
            await box.call("form", {**BASE, **MORE["form"]}, plain)


async def test_killed_idle_process_is_replaced() -> None:
    """A machine short of memory kills any process: the next template is not at fault."""
    plain = documents("plain", {"main.tf": SHOWN % '"graz"'})
    async with opened() as box:
        await box.call("form", {**BASE, **MORE["form"]}, plain)
        (worker,) = box._all
        worker._process.kill()
        await worker._process.wait()
        view: Any = await box.call("form", {**BASE, **MORE["form"]}, plain)
        assert view["parameters"] and len(box._all) == 1 and worker not in box._all


@pytest.mark.parametrize("written", ['"\\ud800"', 'jsondecode("\\"\\\\ud800\\"")', 'yamldecode("\\"\\\\ud800\\"")'])
async def test_lone_surrogate_is_replaced(written: str) -> None:
    """As Go reads it. A process that passed it on would send an unreadable result."""
    async with opened() as box:
        files = {"main.tf": SHOWN % written + TAGGED % written}
        view: Any = await box.call("form", {**BASE, **MORE["form"]}, documents(written, files))
        assert [item["value"]["value"] for item in view["parameters"]] == ["\ufffd"]
        answer = await box.call("version", BASE, documents(written, files))
        assert answer == [{"zone": "\ufffd"}, None]


async def test_lone_surrogate_in_every_call() -> None:
    async with opened() as box:
        result = await box.call("secrets", {"format": "json", "content": '{"a": "\\ud800"}'})
        assert result == {"a": "\ufffd"}
