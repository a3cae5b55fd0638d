"""The sandbox with real processes: limits end the work and nothing else; work is bounded for every call."""

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
        yield Sandbox(SimpleNamespace(nursery=nursery))  # type: ignore[arg-type]
        nursery.cancel_scope.cancel()


def documents(name: str, files: Mapping[str, str]) -> Documents:
    async def load(new_file: NewFile) -> None:
        new_file().write(tar(files))

    return Documents(name, load)


@pytest.mark.parametrize(
    "call", ["form", *(pytest.param(name, marks=pytest.mark.soak) for name in sorted(MORE.keys() - {"form"}))]
)
async def test_every_greedy_template_is_answered_or_refused(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the limits or with a sentence; each is followed by a plain one, which is answered."""
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 1)
    plain = documents("plain", {"main.tf": SHOWN % '"graz"'})
    async with opened() as box:
        for name, expression in GREEDY.items():
            files = {**FILES, "main.tf": SHOWN % expression + TAGGED % f"try({expression}, 1)"}
            try:
                await box.call(call, {**BASE, **MORE[call]}, documents(name, files))
            except TooMuchWorkError as error:
                assert "more" in error.message, name
            shown = await box.call("form", {**BASE, **MORE["form"]}, plain)
            assert [one["value"]["value"] for one in shown["parameters"]] == ["graz"], name


@pytest.mark.parametrize("kind", ["yaml", "json", "env"])
async def test_secrets_are_bounded_too(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 1)
    async with opened() as box:
        for content in (*FILES.values(), "a: b\n" * 100_000, '{"a": ' * 100_000, "x"):
            try:
                found = await box.call("secrets", {"format": kind, "content": content})
                assert isinstance(found, str | dict)
            except TooMuchWorkError as error:
                assert "more" in error.message
        good = {"yaml": "a: b", "json": '{"a": "b"}', "env": "a=b"}[kind]
        assert await box.call("secrets", {"format": kind, "content": good}) == {"a": "b"}


async def test_a_process_knows_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """No secret of the server's environment, no file it could write."""
    monkeypatch.setenv("CODER_PG_CONNECTION_URL", "postgres://secret")
    async with opened() as box:
        await box.call("secrets", {"format": "env", "content": "a=b"})
        (worker,) = box._all
        process = trio.Path(f"/proc/{worker._process.pid}")
        environment = await (process / "environ").read_text()
        assert "secret" not in environment
        limits = await (process / "limits").read_text()
        assert any(line.split()[:5] == ["Max", "file", "size", "0", "0"] for line in limits.splitlines())


async def test_one_caller_waits_for_himself() -> None:
    """His second call begins when his first is done, and another's does not wait for it."""
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


async def test_who_leaves_costs_nobody_a_process() -> None:
    """A form is closed while it is worked out, again and again: the templates that are remembered stay so."""
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
            for _ in range(3):  # one is worked on, the others have not begun
                nursery.start_soon(ask)
            while not loads:
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        (worker,) = box._all
        gate.set()
        shown = await ask()
        assert [one["value"]["value"] for one in shown["parameters"]] == ["graz"]
        assert box._all == {worker} and len(loads) == 1
        assert box._callers == {}


async def test_what_loading_raises_is_told_who_asked() -> None:
    async def fail(_new_file: NewFile) -> None:
        raise LookupError("gone")

    async with opened() as box:
        with pytest.raises(LookupError, match="gone"):
            await box.call("form", {**BASE, **MORE["form"]}, Documents("gone", fail), caller="eve")
        assert box._callers == {}


def test_every_call_has_its_greedy_callers() -> None:
    assert set(CALLS) == {*MORE, "secrets"}


async def test_our_own_errors_are_not_said_to_be_the_authors() -> None:
    """What the worker did not expect, and a process that ends by itself or by somebody's hand."""
    plain = documents("plain", {"main.tf": SHOWN % '"graz"'})
    async with opened() as box:
        with pytest.raises(SandboxFailedError, match="error in the server"):
            await box.call("form", {**BASE}, plain)  # no number: a call nobody of ours makes
        (worker,) = box._all
        shown = await box.call("form", {**BASE, **MORE["form"]}, plain)
        assert shown["parameters"] and box._all == {worker}, "the process goes on"
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
        await worker._sink.send_all(b"\0\0\0\1{")  # a frame that is no JSON ends it with a traceback
        with pytest.raises(SandboxFailedError):
            await box.call("form", {**BASE, **MORE["form"]}, plain)


async def test_who_asks_after_an_idle_process_was_ended_hears_nothing_of_it() -> None:
    """A machine that needs memory ends what it likes: the template that is next is not what took too much."""
    plain = documents("plain", {"main.tf": SHOWN % '"graz"'})
    async with opened() as box:
        await box.call("form", {**BASE, **MORE["form"]}, plain)
        (worker,) = box._all
        worker._process.kill()
        await worker._process.wait()
        shown = await box.call("form", {**BASE, **MORE["form"]}, plain)
        assert shown["parameters"] and len(box._all) == 1 and worker not in box._all


@pytest.mark.parametrize("written", ['"\\ud800"', 'jsondecode("\\"\\\\ud800\\"")', 'yamldecode("\\"\\\\ud800\\"")'])
async def test_half_a_character_is_answered_as_a_replacement(written: str) -> None:
    """As Go reads it. Nobody could read the answer of a process that passed it on."""
    async with opened() as box:
        files = {"main.tf": SHOWN % written + TAGGED % written}
        shown = await box.call("form", {**BASE, **MORE["form"]}, documents(written, files))
        assert [one["value"]["value"] for one in shown["parameters"]] == ["\ufffd"]
        tags, refusal = await box.call("version", BASE, documents(written, files))
        assert (tags, refusal) == ({"zone": "\ufffd"}, None)


async def test_half_a_character_is_answered_whoever_sent_it() -> None:
    async with opened() as box:
        found = await box.call("secrets", {"format": "json", "content": '{"a": "\\ud800"}'})
        assert found == {"a": "\ufffd"}
