"""Client of the container engine's command, docker or podman, for the list of containers.

`read_containers_untrusted` parses the output; shapes are those of `coder/api/agents/agent_containers.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from coder.agent.devcontainers.commands import CommandError, find_program, read_json_untrusted, run_command
from coder.agent.workspace.containers import ENGINES, NO_ENGINE
from coder.base.json_types import Json, JsonObject, checked_list, checked_object

FOLDER_LABEL, FILE_LABEL = "devcontainer.local_folder", "devcontainer.config_file"
"""Labels that `devcontainer up` sets on its containers: folder and description on the machine it ran on."""
ENGINE_TIMEOUT = 10.0
MAX_CONTAINERS = 200
MAX_ANSWER = 8 << 20
"""Limits (ours): seconds for one command, containers listed, and as many dev containers; bytes of the output."""
_ID_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Port:
    port: int
    network: str
    host_ip: str = ""
    host_port: int = 0

    def to_api(self) -> JsonObject:
        """Return the port as the API has it, without unpublished fields."""
        row: JsonObject = {"port": self.port, "network": self.network}
        return {**row, "host_ip": self.host_ip, "host_port": self.host_port} if self.host_port else row


@dataclass(frozen=True, slots=True)
class ContainerRow:
    """Container, running or not."""

    id: str
    name: str
    image: str
    created_at: str
    "Time in RFC 3339."
    labels: dict[str, str]
    running: bool
    status: str
    ports: tuple[Port, ...]
    volumes: dict[str, str]
    "Source path on the host to path inside the container."

    def to_api(self) -> JsonObject:
        return asdict(self) | {"ports": [port.to_api() for port in self.ports]}


@dataclass(frozen=True, slots=True)
class Listing:
    containers: tuple[ContainerRow, ...]
    warnings: tuple[str, ...] = ()
    complete: bool = True
    "Whether every dev container is listed. An engine that does not answer has not stopped any container."


async def find_engine(env: Mapping[str, str]) -> str | None:
    """Return the path of the engine's program for commands with that environment."""
    return await find_program(ENGINES, env)


async def list_containers(engine: str | None, env: Mapping[str, str], *, only_dev: bool = False) -> Listing:
    """Return the newest containers and every dev container, or only the latter, newest first. A failure to list becomes
    a warning of the listing."""
    if engine is None:
        return Listing((), (f"No containers can be listed: {NO_ENGINE}.",), complete=False)
    try:
        ids = [] if only_dev else await _ids(engine, env)
        # Among many containers an old dev container may be missing from the newest ones, and a missing one counts as
        # stopped.
        dev = await _ids(engine, env, only_dev=True) if only_dev or len(ids) > MAX_CONTAINERS else []
        ids_to_describe = list(dict.fromkeys([*ids[:MAX_CONTAINERS], *dev[:MAX_CONTAINERS]]))
        rows = await _describe(engine, env, ids_to_describe)
        undescribed = set(ids_to_describe) - {row.id for row in rows}
        if undescribed:  # removed meanwhile, which makes the command fail, or the engine failed
            undescribed &= set(await _ids(engine, env, only_dev=only_dev))
    except CommandError as error:
        return Listing((), (str(error),), complete=False)
    warnings = []
    if len(ids) > MAX_CONTAINERS:
        warnings.append(f"Only the newest {MAX_CONTAINERS} of {len(ids)} containers and the dev containers are shown.")
    if len(dev) > MAX_CONTAINERS:
        warnings.append(f"Only the newest {MAX_CONTAINERS} of {len(dev)} dev containers are managed.")
    if undescribed:
        warnings.append(f"The engine does not describe {len(undescribed)} of its containers.")
    return Listing(tuple(rows), tuple(warnings), complete=len(dev) <= MAX_CONTAINERS and not undescribed)


async def _ids(engine: str, env: Mapping[str, str], *, only_dev: bool = False) -> list[str]:
    """Return container ids, newest first. Raises CommandError."""
    argv = [engine, "ps", "--all", "--quiet", "--no-trunc"]
    argv += ["--filter", f"label={FOLDER_LABEL}"] if only_dev else []
    result = await run_command(argv, env, seconds=ENGINE_TIMEOUT, max_output=MAX_ANSWER)
    return result.require("Listing containers").decode("ascii", "replace").split()


async def _describe(engine: str, env: Mapping[str, str], ids: Sequence[str]) -> list[ContainerRow]:
    """Return the containers that the engine describes. Raises CommandError."""
    rows: list[ContainerRow] = []
    for first in range(0, len(ids), MAX_CONTAINERS):
        argv = [engine, "inspect", "--type", "container", *ids[first : first + MAX_CONTAINERS]]
        answer = await run_command(argv, env, seconds=ENGINE_TIMEOUT, max_output=MAX_ANSWER)
        rows += read_containers_untrusted(answer.output or answer.require("Describing containers"))
    return rows


def read_containers_untrusted(answer: bytes) -> tuple[ContainerRow, ...]:
    """Parse the output of `docker inspect` or `podman inspect`. Raises CommandError when it cannot be parsed."""
    try:
        return tuple(_row(checked_object(item)) for item in checked_list(read_json_untrusted(answer)))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise CommandError("The container engine's output could not be parsed.") from error


def _row(item: Mapping[str, Json]) -> ContainerRow:
    config, state = checked_object(item.get("Config")), checked_object(item.get("State"))
    status = str(state.get("Status") or "")
    labels = {str(key): str(value) for key, value in checked_object(config.get("Labels")).items()}
    mounts = map(checked_object, checked_list(item.get("Mounts")))
    ident = item["Id"]
    if not isinstance(ident, str):
        raise TypeError("an id is a text")
    return ContainerRow(
        id=ident,
        name=str(item.get("Name") or ident[:_ID_LENGTH]).removeprefix("/"),
        image=str(config.get("Image") or item.get("ImageName") or ""),
        created_at=str(item.get("Created") or ""),
        labels=labels,
        running=bool(state.get("Running")),
        status=str(state.get("Error") or status) if not state.get("Running") else status or "running",
        ports=tuple(_ports(checked_object(checked_object(item.get("NetworkSettings")).get("Ports")))),
        volumes={str(mount.get("Source") or ""): str(mount.get("Destination") or "") for mount in mounts},
    )


def _ports(published: Mapping[str, Json]) -> list[Port]:
    ports_listed = []
    for name, bindings in published.items():
        number, _, network = str(name).partition("/")
        for binding in map(checked_object, checked_list(bindings) or [{}]):
            host = str(binding.get("HostPort") or "")
            ports_listed.append(
                Port(int(number), network or "tcp", str(binding.get("HostIp") or ""), int(host) if host else 0)
            )
    # The engine lists a port published for both address families twice: the first item is enough.
    seen: dict[tuple[int, str, int], Port] = {}
    for port in ports_listed:
        seen.setdefault((port.port, port.network, port.host_port), port)
    return sorted(seen.values(), key=lambda port: (port.port, port.network, port.host_port))
