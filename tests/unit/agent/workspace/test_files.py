"""Files of a workspace with a silent disk and arbitrary file types."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from coder.agent import disk
from coder.agent.disk import THREADS
from coder.agent.network import file_bundle, file_edits, whole_files
from coder.agent.network.http_api import HttpApi
from coder.agent.network.http_messages import HttpRequest
from coder.agent.network.reconnecting_pty import PtyService
from coder.agent.reports import volumes
from coder.agent.reports.flight_file import FlightFile
from coder.agent.reports.flight_recorder import FlightRecorder
from coder.agent.ssh import sessions
from coder.agent.state import AgentState, Identity
from coder.agent.workspace import files, git_changes, mcp_servers, script_log, secret_files
from coder.agent.workspace.files import THREADS_PER_FOLDER, NotRegularError, open_regular, read_regular, workdir
from coder.agent.workspace.mcp_servers import ToolServers
from coder.agent.workspace.secret_files import write_secret_files
from coder.rpc.proto import agent_pb2
from tests.kit.event_loop_probes import no_threads
from tests.kit.paths import ROOT


def state_of(home: Path) -> AgentState:
    state = AgentState(identity=Identity("me", home, "/bin/sh"), token="t", url="http://x", executable="coder")
    state.directory = home
    state.tool_servers = ToolServers(state)
    return state


def odd_things(folder: Path) -> list[Path]:
    """Create file types that are not regular files, and links to them."""
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s"))
    found = [folder / "pipe", folder / "folder", folder / "s", Path("/dev/null"), Path("/dev/ptmx"), Path("/dev/zero")]
    for index, target in enumerate(list(found)):
        link = folder / f"link{index}"
        link.symlink_to(target)
        found.append(link)
    return found


def test_only_regular_files_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    things = odd_things(tmp_path)
    opened = list[str]()
    plain = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: opened.append(str(path)) or plain(path, *rest))
    for thing in things:
        for flags in (os.O_RDONLY, os.O_WRONLY | os.O_CREAT):
            with pytest.raises(NotRegularError, match="not a regular file"):
                open_regular(thing, flags)
    assert opened == []


def test_swapped_file_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").touch()
    reading, writing = os.pipe()
    monkeypatch.setattr(os, "open", lambda *_: reading)
    with pytest.raises(NotRegularError):
        open_regular(tmp_path / "f")
    with pytest.raises(BrokenPipeError):  # it was closed
        os.write(writing, b"x")
    os.close(writing)


def test_reads_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "READ_SIZE", 3)
    (tmp_path / "f").write_bytes(b"0123456789")
    (tmp_path / "l").symlink_to("f")
    for limit, offset, wanted in ((4, 0, b"0123"), (1 << 62, 7, b"789"), (0, 0, b""), (-2, 0, b""), (5, 99, b"")):
        assert read_regular(tmp_path / "l", limit, offset) == wanted
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none", 1)


async def test_silent_folder_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_of(tmp_path / "home")
    state.directory = tmp_path / "directory"
    assert await workdir(state) == Path("/")
    state.identity.home.mkdir()
    assert await workdir(state) == state.identity.home
    state.directory.mkdir()
    assert await workdir(state) == state.directory
    answer = threading.Event()
    plain, in_thread = Path.is_dir, disk.on_disk

    async def on_disk(access: Any, *, limiter: trio.CapacityLimiter) -> Any:
        """A busy machine may need longer for a thread than the silent disk's timeout."""
        return await in_thread(access, limiter=limiter) if access.__self__ == state.directory else access()

    monkeypatch.setattr(files, "on_disk", on_disk)
    monkeypatch.setattr(files, "DISK_TIMEOUT", 0.1)
    monkeypatch.setattr(Path, "is_dir", lambda self: plain(self) if self != state.directory else answer.wait())
    try:
        assert await workdir(state) == state.identity.home
    finally:
        answer.set()


@pytest.mark.parametrize("number", [errno.ENOTCONN, errno.ESTALE, errno.EACCES, errno.EIO])
async def test_inaccessible_folder_is_skipped(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A FUSE mount whose program has died, a withdrawn export: a shell starts at home."""
    state, plain = state_of(tmp_path / "home"), Path.stat
    state.directory = tmp_path / "directory"
    state.identity.home.mkdir()

    def stat(path: Path, **how: Any) -> os.stat_result:
        if path == state.directory:
            raise OSError(number, os.strerror(number))
        return plain(path, **how)

    monkeypatch.setattr(Path, "stat", stat)
    assert await workdir(state) == state.identity.home


async def test_inaccessible_entry_spares_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("away", "file"):
        (tmp_path / name).touch()
    plain = os.stat

    def stat(path: Any, *where: Any, **how: Any) -> os.stat_result:
        if str(path).endswith("/away"):
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        return plain(path, *where, **how)

    monkeypatch.setattr(os, "stat", stat)
    found: Any = await ask("POST", "list-directory", {}, path=".")(state_of(tmp_path))
    contents = json.loads(found.body)["contents"]
    assert [(one["name"], one["is_dir"]) for one in contents] == [("away", False), ("file", False), ("folder", True)]


async def test_silent_folder_leaves_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a command uses it."""
    answer, asked = threading.Event(), list[Path]()

    def access(folder: Path) -> bool:
        asked.append(folder)
        return answer.wait(60)

    monkeypatch.setattr(files, "DISK_TIMEOUT", 0.05)
    monkeypatch.setattr(Path, "is_dir", access)
    state = state_of(tmp_path)
    try:
        async with trio.open_nursery() as nursery:
            for _ in range(3 * THREADS_PER_FOLDER):
                nursery.start_soon(workdir, state)
        assert len(asked) <= THREADS_PER_FOLDER * len(state.workdirs())
        assert THREADS.limiter().borrowed_tokens == 0
    finally:
        answer.set()


@pytest.mark.parametrize("name", ["a secret's file", "a script's log", "git/watch", "volumes", "workdir"])
async def test_repeated_access_leaves_threads(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each script run, each reading, each git poll: while the disk is silent there are ever more of them."""
    access, owner, function = LOOKS[name]
    state, held = state_of(tmp_path), THREADS.limiter().borrowed_tokens
    for times in (files, secret_files, script_log, volumes):
        monkeypatch.setattr(times, "DISK_TIMEOUT", 0.05)
    monkeypatch.setattr(git_changes, "COMMAND_TIMEOUT", 0.05)
    with blocked_call(owner, function, monkeypatch) as waiting:
        async with trio.open_nursery() as nursery:
            for _ in range(3 * int(THREADS.limiter().total_tokens)):
                nursery.start_soon(_access_or_fail, access, state)
            await waiting.wait()
            assert THREADS.limiter().borrowed_tokens <= held
            nursery.cancel_scope.cancel()
        assert THREADS.limiter().borrowed_tokens <= held


# ---- remote access to a workspace

Look = Callable[[AgentState], Awaitable[object]]


def ask(method: str, route: str, body: Any = None, **query: str) -> Look:
    async def asked(state: AgentState) -> object:
        wanted = {name: [str(state.workdirs()[0] / value)] for name, value in query.items()}
        request = HttpRequest(method, f"/api/v0/{route}", wanted, json.dumps(body).encode())
        return await HttpApi(state)._answer(request)

    return asked


async def recorded(state: AgentState) -> None:
    recorder = FlightRecorder(state.workdirs()[0])
    recorder.name("w")
    await recorder.open()


async def kept(state: AgentState) -> None:
    async with script_log.script_log(state.workdirs()[0] / "log"):
        await trio.sleep_forever()


SECRETS = agent_pb2.Manifest(secrets=[agent_pb2.WorkspaceSecret(file_path="~/secret", value=b"x")])
EDIT = {"files": [{"path": "/etc/hostname", "edits": [{"search": "a", "replace": "b"}]}]}
LOOKS: dict[str, tuple[Look, Any, str]] = {
    "read-file": (ask("GET", "read-file", path="f"), whole_files, "read_regular"),
    "write-file": (ask("POST", "write-file", path="f"), whole_files, "_write"),
    "list-directory": (ask("POST", "list-directory", {}), whole_files, "_entries"),
    "resolve-path": (ask("GET", "resolve-path", path="f"), Path, "resolve"),
    "read-file-lines": (ask("GET", "read-file-lines", path="f"), file_edits, "read_regular"),
    "edit-files": (ask("POST", "edit-files", EDIT), file_edits, "read_regular"),
    "bundle-files": (ask("POST", "bundle-files", {"paths": ["f"]}), file_bundle, "read_regular"),
    "mcp/tools": (ask("GET", "mcp/tools"), mcp_servers, "read_regular"),
    "mcp/call-tool": (ask("POST", "mcp/call-tool", {"tool_name": "a__b"}), mcp_servers, "read_regular"),
    "git/watch": (lambda state: git_changes.scan(state.workdirs()[0], {}), git_changes, "find_repositories"),
    "workdir": (workdir, Path, "is_dir"),
    "a secret's file": (lambda state: write_secret_files(state, SECRETS), secret_files, "open_private"),
    "a script's log": (kept, script_log, "open_for_writing"),
    "message of the day": (lambda state: sessions._message_of_the_day(Path("/"), Path("/f")), sessions, "read_regular"),
    "volumes": (lambda state: volumes.read_volumes([state.workdirs()[0]]), volumes, "disk_usage"),
    "flight recorder": (recorded, FlightFile, "open_file"),
}
"""Everything that reads or writes the content of a workspace: the request, and the call that a silent disk blocks."""


@contextmanager
def blocked_call(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[trio.Event]:
    """Set once a caller waits for the disk."""
    token, waiting, back = trio.lowlevel.current_trio_token(), trio.Event(), threading.Event()

    def access(*_: Any, **__: Any) -> Any:
        token.run_sync_soon(waiting.set)
        back.wait()
        raise FileNotFoundError(2, "back too late")

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, access)
        try:
            yield waiting
        finally:
            back.set()


@pytest.mark.parametrize("name", LOOKS)
async def test_silent_disk_blocks_no_caller(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access, owner, function = LOOKS[name]
    (tmp_path / "f").write_text("before")
    others = trio.to_thread.current_default_thread_limiter()
    with blocked_call(owner, function, monkeypatch) as waiting, trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(access, state_of(tmp_path))
            await waiting.wait()
            assert others.borrowed_tokens == 0
            nursery.cancel_scope.cancel()
    assert (tmp_path / "f").read_text() == "before"


@pytest.mark.parametrize("name", LOOKS)
async def test_thread_shortage_ends_access_only(name: str, tmp_path: Path) -> None:
    """The caller gets an error or continues without: an exception here would end the agent or a connection."""
    with no_threads():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_access_or_fail, LOOKS[name][0], state_of(tmp_path))
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()


async def _access_or_fail(access: Look, state: AgentState) -> None:
    try:
        found: Any = await access(state)
    except git_changes.GitError as error:
        assert "could not be searched" in str(error)
    else:
        assert getattr(found, "status", 500) == 500 or b"no room for another thread" in found.body


def test_table_covers_file_routes() -> None:
    routes = {**file_edits.FILE_ROUTES, **file_bundle.BUNDLE_ROUTES}
    assert {path.removeprefix("/api/v0/") for _, path in routes} <= LOOKS.keys()


async def test_viewers_share_new_terminal(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        terminals = PtyService(state_of(tmp_path), nursery)
        init = json.dumps({"ID": "6f2d0a1e-0000-4000-8000-000000000000", "Height": 9, "Width": 9, "Command": "cat"})
        ends = []
        for _ in range(2):
            near, far = trio.testing.memory_stream_pair()
            await near.send_all(len(init).to_bytes(2, "little") + init.encode())
            nursery.start_soon(terminals.serve, far)
            ends.append(near)
        with trio.fail_after(60):
            await ends[0].send_all(json.dumps({"data": "hello\n"}).encode())
            for near in ends:
                seen = b""
                while b"hello" not in seen:
                    seen += bytes(await near.receive_some())
        assert len(terminals._sessions) == 1
        nursery.cancel_scope.cancel()


async def test_cancelled_edits_are_not_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_text("before")
    token, reading, go_on, ended = trio.lowlevel.current_trio_token(), trio.Event(), threading.Event(), trio.Event()
    plain = file_edits.edited
    plain_all = file_edits._edit_all

    def slow(*given: Any) -> str:
        token.run_sync_soon(reading.set)
        go_on.wait()
        return plain(*given)

    def all_of_them(*given: Any) -> Any:
        try:
            return plain_all(*given)
        finally:
            token.run_sync_soon(ended.set)

    monkeypatch.setattr(file_edits, "edited", slow)
    monkeypatch.setattr(file_edits, "_edit_all", all_of_them)
    body = {"files": [{"path": str(path), "edits": [{"search": "before", "replace": "after"}]}]}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask("POST", "edit-files", body), state_of(tmp_path))
        await reading.wait()
        nursery.cancel_scope.cancel()
    go_on.set()
    with trio.fail_after(60):
        await ended.wait()
    assert path.read_text() == "before"


@pytest.mark.parametrize("route", ["read-file", "write-file", "read-file-lines"])
async def test_special_files_are_rejected(route: str, tmp_path: Path) -> None:
    for thing in odd_things(tmp_path):
        method = "POST" if route == "write-file" else "GET"
        with trio.fail_after(60):
            found: Any = await ask(method, route, path=str(thing))(state_of(tmp_path))
        assert "not a regular file" in found.body.decode(), thing
        assert found.status == (200 if route == "read-file-lines" else 400)


async def test_special_tool_file_is_rejected(tmp_path: Path) -> None:
    for number, thing in enumerate(odd_things(tmp_path)):
        folder = tmp_path / f"project{number}"
        folder.mkdir()
        (folder / ".mcp.json").symlink_to(thing)
        with trio.fail_after(60):
            found: Any = await ask("GET", "mcp/tools")(state_of(folder))
        assert found.status == 500 and b"not a regular file" in found.body


async def test_slow_access_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_servers, "READ_TIMEOUT", 0.1)
    monkeypatch.setattr(git_changes, "COMMAND_TIMEOUT", 0.1)
    with blocked_call(mcp_servers, "read_regular", monkeypatch):
        found: Any = await ask("GET", "mcp/tools")(state_of(tmp_path))
        assert found.status == 500 and b"was not read within" in found.body
    with (
        blocked_call(git_changes, "find_repositories", monkeypatch),
        pytest.raises(git_changes.GitError, match="searched"),
    ):
        await git_changes.scan(tmp_path, {})


async def test_writes_happen_in_place(tmp_path: Path) -> None:
    path, other, link = tmp_path / "a/b/f", tmp_path / "other", tmp_path / "link"
    link.symlink_to("target")
    for name in (path, link):
        for text in ("longer text", "short"):
            request = HttpRequest("POST", "/api/v0/write-file", {"path": [str(name)]}, text.encode())
            assert (await HttpApi(state_of(tmp_path))._answer(request)).status == 200
            assert name.read_text() == text
            if not other.exists():
                os.link(path, other)
    assert link.is_symlink() and other.read_text() == "short"


def test_missing_flags_open_binary(tmp_path: Path) -> None:
    """Windows has none of them, and one of its own."""
    program = """
        import os, sys
        from pathlib import Path
        plain, asked = os.open, []
        for name in ("O_NONBLOCK", "O_NOCTTY", "O_NOFOLLOW"):
            delattr(os, name)
        os.O_BINARY = 1 << 60
        os.open = lambda path, flags, *mode: asked.append(flags) or plain(path, flags & ~os.O_BINARY, *mode)
        from coder.agent.workspace import files
        path = Path(sys.argv[1])
        with os.fdopen(files.open_for_writing(path, os.O_TRUNC, 0o600), "wb") as out:
            out.write(b"a")
        assert files.read_regular(path, 9) == b"a" and [bool(one & os.O_BINARY) for one in asked[-2:]] == [True] * 2
    """
    env = {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "f")], env=env, check=True)
