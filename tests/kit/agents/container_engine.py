"""A container engine and the devcontainer command, both scripts: a container is a folder of this machine.

engine = FakeEngine(tmp_path, monkeypatch)     # `docker` on PATH
engine.add_builder()                           # and `devcontainer`
engine.describe(folder, customizations={"coder": {…}}, fails="the reason")

What runs in a container runs here, as the user of the test; only our program's folder lies below the container's root.

`ContainerApi` is the HTTP API of an agent next to an engine, with one dev container that can be rebuilt and removed. It
replaces ours where a test needs no engine; shapes are those of types.schema.json.

with MonkeyPatch.context() as patch:
    patch.setattr(http_api, "HttpApi", ContainerApi)
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import h11
import pytest
import trio

from coder.agent.devcontainers.sub_agents import PROGRAM
from coder.net.websocket import WebSocketStream, accept_key

_DOCKER = """#!{python} -IS
import json, os, pathlib, shutil, sys
base = pathlib.Path({base!r})
def found():
    return sorted((one for one in base.iterdir()), key=lambda one: one.stat().st_mtime, reverse=True)
with open(base.parent / "words", "a") as words:
    words.write(json.dumps(sys.argv[1:]) + "\\n")
verb, rest = sys.argv[1], sys.argv[2:]
if (base.parent / "broken").exists():
    sys.exit("Cannot connect to the Docker daemon")
if verb == "ps":
    label = rest[rest.index("--filter") + 1].partition("=")[2] if "--filter" in rest else ""
    for one in found():
        if not label or label in json.loads((one / "inspect.json").read_text())["Config"]["Labels"]:
            print(one.name)
elif verb == "inspect":
    print(json.dumps([json.loads((base / name / "inspect.json").read_text()) for name in rest[2:]]))
elif verb == "rm":
    shutil.rmtree(base / rest[-1])
elif verb == "exec":
    while rest[0].startswith("--"):
        option = rest.pop(0)
        if option in ("--user", "--env"):
            rest.pop(0)
    root = base / rest.pop(0)
    if not root.exists():
        sys.exit("Error: No such container")
    inside = [word.replace({place!r}, str(root) + {place!r}) for word in rest]
    (root / "home").mkdir(exist_ok=True)
    os.execvpe(inside[0], inside, dict(os.environ, HOME=str(root / "home")))
"""
_BUILDER = """#!{python} -IS
import json, pathlib, sys, time, uuid
base = pathlib.Path({base!r})
words = [part for word in sys.argv[2:] for part in (word.split("=", 1) if word.startswith("--") else [word])]
folder = pathlib.Path(words[words.index("--workspace-folder") + 1])
file = folder / ".devcontainer/devcontainer.json"
if "--config" in words:
    file = pathlib.Path(words[words.index("--config") + 1])
inside = "/workspaces/" + folder.name
said = json.loads(file.read_text())
if sys.argv[1] == "read-configuration":
    print(json.dumps({{"configuration": said, "workspace": {{"workspaceFolder": inside}}}}))
    sys.exit()
print("building " + folder.name, file=sys.stderr)
if said.get("fails"):
    print("it does not compile", file=sys.stderr)
    print(json.dumps({{"outcome": "error", "message": "Command failed", "description": said["fails"]}}))
    sys.exit(1)
for one in base.iterdir():
    shown = json.loads((one / "inspect.json").read_text())
    if shown["Config"]["Labels"].get("devcontainer.local_folder") == str(folder):
        if "--remove-existing-container" not in words:
            print(json.dumps({{"outcome": "success", "containerId": one.name, "remoteUser": "dev"}}))
            sys.exit()
        one.rename(base.parent / ("removed-" + one.name))
name = uuid.uuid4().hex * 2
(base / name).mkdir()
(base / name / "inspect.json").write_text(json.dumps({{
    "Id": name, "Created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1)),
    "Name": "/" + folder.name + "_1",
    "Config": {{
        "Image": "dev:1",
        "Labels": {{"devcontainer.local_folder": str(folder), "devcontainer.config_file": str(file)}},
    }},
    "State": {{"Running": True, "Status": "running"}},
    "NetworkSettings": {{"Ports": {{"80/tcp": [{{"HostIp": "127.0.0.1", "HostPort": "8080"}}]}}}},
    "Mounts": [{{"Source": str(folder), "Destination": inside}}],
}}))
said = {{"containerId": name, "remoteUser": "dev", "remoteWorkspaceFolder": inside}}
print(json.dumps({{"outcome": "success", **said}}))
"""


class FakeEngine:
    """One machine's; its commands are found by what the test starts."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str = "docker") -> None:
        self._bin, self.containers = folder / "engine" / "bin", folder / "engine" / "containers"
        self._bin.mkdir(parents=True)
        self.containers.mkdir()
        monkeypatch.setenv("PATH", f"{self._bin}:/usr/bin:/bin")
        self._write(name, _DOCKER)

    def add_builder(self) -> None:
        self._write("devcontainer", _BUILDER)

    def remove(self, name: str) -> None:
        (self._bin / name).unlink()

    def _write(self, name: str, text: str) -> None:
        path = self._bin / name
        place = str(Path(PROGRAM).parent)
        path.write_text(text.format(python=sys.executable, base=str(self.containers), place=place))
        path.chmod(0o755)

    def describe(self, folder: Path, **said: Any) -> None:
        """Writes the folder's `devcontainer.json`; `fails` is why building it does."""
        (folder / ".devcontainer").mkdir(parents=True, exist_ok=True)
        (folder / ".devcontainer" / "devcontainer.json").write_text(json.dumps(said))

    def break_down(self, *, broken: bool = True) -> None:
        """The engine's daemon goes away, or comes back."""
        path = self.containers.parent / "broken"
        path.touch() if broken else path.unlink()

    def ids(self) -> list[str]:
        return [one.name for one in self.containers.iterdir()]

    def stop(self, ident: str, status: str = "exited") -> None:
        path = self.containers / ident / "inspect.json"
        shown = json.loads(path.read_text())
        shown["State"] = {"Running": False, "Status": status}
        path.write_text(json.dumps(shown))

    def mount(self, ident: str, *sources: str) -> None:
        """That is all it has of the machine."""
        path = self.containers / ident / "inspect.json"
        shown = json.loads(path.read_text())
        shown["Mounts"] = [{"Source": source, "Destination": "/workspaces"} for source in sources]
        path.write_text(json.dumps(shown))

    def drop(self, ident: str) -> None:
        shutil.rmtree(self.containers / ident)

    def words(self) -> list[list[str]]:
        """Every command line of the engine."""
        return [json.loads(line) for line in (self.containers.parent / "words").read_text().splitlines()]


DEVCONTAINER = "7d3c5b1e-2222-4333-8444-0123456789ab"
LIST = {
    "devcontainers": [
        {
            "id": DEVCONTAINER,
            "name": "project",
            "workspace_folder": "/home/coder/project",
            "status": "running",
            "dirty": False,
        }
    ],
    "containers": [
        {
            "id": "0123456789ab",
            "name": "project-1",
            "image": "debian",
            "created_at": "2026-01-02T03:04:05Z",
            "labels": {},
            "running": True,
            "ports": [{"port": 80, "network": "tcp", "host_ip": "127.0.0.1", "host_port": 8080}],
            "status": "running",
            "volumes": {},
        }
    ],
    "warnings": [],
}


class ContainerApi:
    """In the place of `coder.agent.network.http_api.HttpApi`."""

    def __init__(self, _state: object) -> None:
        pass

    async def serve(self, stream: trio.abc.HalfCloseableStream) -> None:
        """One request; a watch lasts until the other end leaves."""
        async with stream:
            connection = h11.Connection(h11.SERVER)
            while not isinstance(event := connection.next_event(), h11.Request):
                if event is not h11.NEED_DATA:
                    return
                connection.receive_data(bytes(await stream.receive_some(65536)))
            method, path = event.method.decode(), event.target.decode().partition("?")[0]
            if path.endswith("/watch"):
                await _watch(connection, event, stream)
                return
            status, body = _answer(method, path)
            data = b"" if body is None else json.dumps(body).encode()
            headers = [("Content-Type", "application/json"), ("Content-Length", str(len(data)))]
            out = connection.send(h11.Response(status_code=status, headers=headers if data else [])) or b""
            out += connection.send(h11.Data(data=data)) or b""
            await stream.send_all(out + (connection.send(h11.EndOfMessage()) or b""))


def _answer(method: str, path: str) -> tuple[int, Any]:
    if (method, path) == ("GET", "/api/v0/containers"):
        return 200, LIST
    if DEVCONTAINER not in path:
        return 404, {"message": "Devcontainer not found."}
    if (method, path.rpartition("/")[2]) == ("POST", "recreate"):
        return 202, {"message": "Devcontainer recreation initiated", "detail": "It takes a while."}
    return 204, None


async def _watch(connection: h11.Connection, request: h11.Request, stream: trio.abc.HalfCloseableStream) -> None:
    key = dict(request.headers)[b"sec-websocket-key"].decode()
    headers = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Accept", accept_key(key))]
    while not isinstance(connection.next_event(), h11.EndOfMessage):
        pass
    await stream.send_all(connection.send(h11.InformationalResponse(status_code=101, headers=headers)) or b"")
    socket = WebSocketStream(stream, client=False)
    await socket.send_message(json.dumps(LIST))
    await socket.receive_message()
