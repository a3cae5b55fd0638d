"""The container engine of the workspace, docker or podman, asked through its command: which containers there are.

What it answers is read by `read_containers_untrusted`; shapes are those of `coder/api/agents/agent_containers.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from coder.agent.devcontainers.commands import CommandError, ask, find_program, read_json_untrusted
from coder.agent.workspace.containers import ENGINES, NO_ENGINE

FOLDER_LABEL, FILE_LABEL = "devcontainer.local_folder", "devcontainer.config_file"
"""What `devcontainer up` marks its containers with: folder and description on the machine it ran on."""
ANSWER_TIME = 10.0
MAX_CONTAINERS = 200
MAX_ANSWER = 8 << 20
"""Ours: seconds for one question, containers that are shown, and as many dev containers; bytes of an answer."""
_ID_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Port:
    port: int
    network: str
    host_ip: str = ""
    host_port: int = 0

    def shown(self) -> dict[str, Any]:
        """As the API has it: without what is not published."""
        return {"port": self.port, "network": self.network} | (
            {"host_ip": self.host_ip, "host_port": self.host_port} if self.host_port else {}
        )


@dataclass(frozen=True, slots=True)
class ContainerRow:
    """One container, running or not."""

    id: str
    name: str
    image: str
    created_at: str
    "RFC 3339."
    labels: dict[str, str]
    running: bool
    status: str
    ports: tuple[Port, ...]
    volumes: dict[str, str]
    "Source to place inside."

    def shown(self) -> dict[str, Any]:
        return asdict(self) | {"ports": [port.shown() for port in self.ports]}


@dataclass(frozen=True, slots=True)
class Listing:
    containers: tuple[ContainerRow, ...]
    warnings: tuple[str, ...] = ()
    complete: bool = True
    "Whether a dev container that is not in it is not there: an engine that does not answer has ended nobody's."


async def find_engine(env: Mapping[str, str]) -> str | None:
    """The engine's program, for commands with that environment."""
    return await find_program(ENGINES, env)


async def list_containers(engine: str | None, env: Mapping[str, str], *, only_dev: bool = False) -> Listing:
    """The newest containers and every dev container, or these alone, newest first. What keeps us from a list is its
    warning."""
    if engine is None:
        return Listing((), (f"No containers can be listed: {NO_ENGINE}.",), complete=False)
    try:
        ids = [] if only_dev else await _ids(engine, env)
        # Among many an old one is not among the newest, and one that is not in the list has ended.
        dev = await _ids(engine, env, only_dev=True) if only_dev or len(ids) > MAX_CONTAINERS else []
        wanted = list(dict.fromkeys([*ids[:MAX_CONTAINERS], *dev[:MAX_CONTAINERS]]))
        rows = await _describe(engine, env, wanted)
        silent = set(wanted) - {row.id for row in rows}
        if silent:  # gone meanwhile, which makes the command fail, or the engine has broken down
            silent &= set(await _ids(engine, env, only_dev=only_dev))
    except CommandError as error:
        return Listing((), (str(error),), complete=False)
    warnings = []
    if len(ids) > MAX_CONTAINERS:
        warnings.append(f"Of {len(ids)} containers the newest {MAX_CONTAINERS} and the dev containers are shown.")
    if len(dev) > MAX_CONTAINERS:
        warnings.append(f"Of {len(dev)} dev containers the newest {MAX_CONTAINERS} are looked after.")
    if silent:
        warnings.append(f"The engine tells nothing of {len(silent)} of its containers.")
    return Listing(tuple(rows), tuple(warnings), complete=len(dev) <= MAX_CONTAINERS and not silent)


async def _ids(engine: str, env: Mapping[str, str], *, only_dev: bool = False) -> list[str]:
    """Newest first. Raises CommandError."""
    argv = [engine, "ps", "--all", "--quiet", "--no-trunc"]
    argv += ["--filter", f"label={FOLDER_LABEL}"] if only_dev else []
    said = await ask(argv, env, seconds=ANSWER_TIME, max_output=MAX_ANSWER)
    return said.require("Listing containers").decode("ascii", "replace").split()


async def _describe(engine: str, env: Mapping[str, str], ids: Sequence[str]) -> list[ContainerRow]:
    """Those that the engine tells of. Raises CommandError."""
    rows: list[ContainerRow] = []
    for first in range(0, len(ids), MAX_CONTAINERS):
        argv = [engine, "inspect", "--type", "container", *ids[first : first + MAX_CONTAINERS]]
        answer = await ask(argv, env, seconds=ANSWER_TIME, max_output=MAX_ANSWER)
        rows += read_containers_untrusted(answer.output or answer.require("Describing containers"))
    return rows


def read_containers_untrusted(answer: bytes) -> tuple[ContainerRow, ...]:
    """What `docker inspect` or `podman inspect` printed. Raises CommandError when it cannot be read."""
    try:
        return tuple(_row(one) for one in read_json_untrusted(answer))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise CommandError("The container engine's answer could not be read.") from error


def _row(one: Any) -> ContainerRow:
    config, state = one.get("Config") or {}, one.get("State") or {}
    status = str(state.get("Status") or "")
    labels = {str(key): str(value) for key, value in (config.get("Labels") or {}).items()}
    mounts = one.get("Mounts") or ()
    return ContainerRow(
        id=str(one["Id"]),
        name=str(one.get("Name") or one["Id"][:_ID_LENGTH]).removeprefix("/"),
        image=str(config.get("Image") or one.get("ImageName") or ""),
        created_at=str(one.get("Created") or ""),
        labels=labels,
        running=bool(state.get("Running")),
        status=str(state.get("Error") or status) if not state.get("Running") else status or "running",
        ports=tuple(_ports((one.get("NetworkSettings") or {}).get("Ports") or {})),
        volumes={str(mount.get("Source") or ""): str(mount.get("Destination") or "") for mount in mounts},
    )


def _ports(published: Mapping[str, Any]) -> list[Port]:
    found = []
    for name, places in published.items():
        number, _, network = str(name).partition("/")
        for place in places or [{}]:
            host = str(place.get("HostPort") or "")
            found.append(Port(int(number), network or "tcp", str(place.get("HostIp") or ""), int(host) if host else 0))
    # One for both families is published twice: the first says enough.
    seen: dict[tuple[int, str, int], Port] = {}
    for port in found:
        seen.setdefault((port.port, port.network, port.host_port), port)
    return sorted(seen.values(), key=lambda port: (port.port, port.network, port.host_port))
