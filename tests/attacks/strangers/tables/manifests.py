"""Manifests that no genuine server sends, as changes of a good one. Nothing in them leads off this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coder.rpc.proto import agent_pb2, tailnet_pb2

Manifest = agent_pb2.Manifest
Change = Callable[[Manifest], None]

ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202e\r\nforged=line"
BIG, MOST = (1 << 63) - 1, 200_000
"Seconds of the longest duration; elements that fit a message of 4 MiB, more than any limit."
HUGE = "x" * 1_000_000
SOURCE = bytes(15) + b"\7"


def _set(**fields: Any) -> Change:
    def change(manifest: Manifest) -> None:
        for name, value in fields.items():
            setattr(manifest, name, value)

    return change


def _script(seconds: int = 0, nanos: int = 0, **fields: Any) -> Change:
    def change(manifest: Manifest) -> None:
        row = {"id": SOURCE, "log_source_id": SOURCE, "script": "true", "run_on_start": True} | fields
        script = manifest.scripts.add(**row)
        script.timeout.seconds, script.timeout.nanos = seconds, nanos

    return change


def _cron(line: str) -> Change:
    return _script(cron=line, run_on_start=False)


def _app(
    url: str = "http://127.0.0.1:1/", seconds: int = 5, nanos: int = 0, threshold: int = 1, **fields: Any
) -> Change:
    def change(manifest: Manifest) -> None:
        app = manifest.apps.add(**({"id": SOURCE, "slug": "a"} | fields))
        app.healthcheck.url, app.healthcheck.threshold = url, threshold
        app.healthcheck.interval.seconds, app.healthcheck.interval.nanos = seconds, nanos

    return change


def _metadata(interval: tuple[int, int] = (0, 5), timeout: tuple[int, int] = (0, 1), **fields: Any) -> Change:
    def change(manifest: Manifest) -> None:
        item = manifest.metadata.add(**({"key": "k", "script": "true"} | fields))
        item.interval.seconds, item.interval.nanos = interval
        item.timeout.seconds, item.timeout.nanos = timeout

    return change


def _many(name: str, number: int = MOST, **fields: Any) -> Change:
    def change(manifest: Manifest) -> None:
        rows = getattr(manifest, name)
        rows.extend([rows.add(**fields)] * (number - 1))

    return change


def _both(*changes: Change) -> Change:
    def change(manifest: Manifest) -> None:
        for each in changes:
            each(manifest)

    return change


def _secret(**fields: Any) -> Change:
    return lambda manifest: manifest.secrets.extend([agent_pb2.WorkspaceSecret(**({"value": b"v"} | fields))])


def _env(**variables: str) -> Change:
    return lambda manifest: manifest.environment_variables.update(variables)


def _env_of(name: str, value: str) -> Change:
    return lambda manifest: manifest.environment_variables.update({name: value})


def _container(**fields: Any) -> Change:
    row = agent_pb2.WorkspaceAgentDevcontainer(**({"id": SOURCE, "name": "d"} | fields))
    return lambda manifest: manifest.devcontainers.extend([row])


def region(number: int = 1, host: str = "127.0.0.1", *, key: int | None = None, **fields: Any) -> tailnet_pb2.DERPMap:
    """A map of one region whose relay is this machine's port 1."""
    derp_map = tailnet_pb2.DERPMap()
    row = derp_map.regions[number if key is None else key]
    row.region_id, row.region_code = number, str(fields.pop("code", "r"))
    row.embedded_relay, row.avoid = fields.pop("embedded", False), fields.pop("avoid", False)
    node = {"name": "n", "region_id": number, "host_name": host, "derp_port": 1, "stun_port": -1, "force_http": True}
    row.nodes.add(**(node | fields))
    return derp_map


def _regions(number: int) -> tailnet_pb2.DERPMap:
    derp_map = tailnet_pb2.DERPMap()
    for index in range(1, number + 1):
        derp_map.MergeFrom(region(index))
    return derp_map


def _nodes(number: int) -> tailnet_pb2.DERPMap:
    derp_map = region()
    nodes = derp_map.regions[1].nodes
    nodes.extend([nodes[0]] * number)
    return derp_map


def _scores(value: float) -> tailnet_pb2.DERPMap:
    derp_map = _regions(2)
    derp_map.home_params.region_score[1] = value
    return derp_map


MAPS: dict[str, tailnet_pb2.DERPMap] = {
    "no region": tailnet_pb2.DERPMap(),
    "region 0": region(0),
    "region -1": region(-1),
    "region 2**63-1": region(BIG),
    "another number inside": region(5, key=7),
    "500 regions": _regions(500),
    "3,000 regions": _regions(3000),
    "2,000 relays in a region": _nodes(2000),
    "a host of escape sequences": region(host=ESCAPES),
    "a host with a zero byte": region(host="a\0b"),
    "a host with a line break and a header": region(host="127.0.0.1\r\nX: y"),
    "an empty host": region(host=""),
    "a host with a path": region(host="127.0.0.1/../x"),
    "a host with credentials": region(host="a:b@127.0.0.1"),
    "a host of open brackets": region(host="[::1"),
    "a host that is a URL": region(host="http://127.0.0.1"),
    "a host of 1 MB": region(host=HUGE),
    "a label of 64 letters": region(host="a" * 64),
    "an address of 999": region(ipv4="999.1.1.1"),
    "IPv6 where IPv4 belongs": region(ipv4="::1", ipv6="127.0.0.1"),
    "neither family": region(ipv4="none", ipv6="none"),
    "port -1": region(derp_port=-1),
    "port 0": region(derp_port=0, host="127.0.0.9"),
    "port 99999": region(derp_port=99_999),
    "port 2**31-1": region(derp_port=2**31 - 1),
    "STUN only": region(stun_only=True, derp_port=0),
    "to be avoided": region(avoid=True),
    "a certificate of escape sequences": region(cert_name=ESCAPES, force_http=False),
    "a code of escape sequences": region(code=ESCAPES),
    "embedded, on another host": region(embedded=True, host="127.0.0.9"),
    "a score of NaN": _scores(float("nan")),
    "a score of infinity": _scores(float("inf")),
    "a score of -1": _scores(-1.0),
}
"Relay maps; also sent by the stream of maps."

STUN_MAPS: dict[str, tailnet_pb2.DERPMap] = {
    "a STUN host with a zero byte": region(stun_test_ip="a\0b", stun_port=1),
    "a STUN host with a label of 64 letters": region(stun_test_ip="a" * 64, stun_port=1),
    "STUN at port 99999": region(stun_port=99_999),
    "STUN at port -2": region(stun_port=-2),
}


def _direct(derp_map: tailnet_pb2.DERPMap) -> Change:
    def change(manifest: Manifest) -> None:
        manifest.disable_direct_connections = False
        manifest.derp_map.CopyFrom(derp_map)

    return change


def _map(derp_map: tailnet_pb2.DERPMap) -> Change:
    return lambda manifest: manifest.derp_map.CopyFrom(derp_map)


MANIFESTS: dict[str, dict[str, Change]] = {
    "manifests: identity": {
        "no agent id": _set(agent_id=b""),
        "an agent id of 15 bytes": _set(agent_id=bytes(15)),
        "an agent id of zeros": _set(agent_id=bytes(16)),
        "an agent id of 1 MB": _set(agent_id=bytes(1_000_000)),
        "a workspace id of 3 bytes": _set(workspace_id=b"abc"),
        "a workspace id of 1 MB": _set(workspace_id=bytes(1_000_000)),
        "no workspace id": _set(workspace_id=b""),
        "a parent id of 3 bytes": _set(parent_id=b"abc"),
        "an agent name with a path": _set(agent_name="../../x/y"),
        "an agent name of escape sequences": _set(agent_name=ESCAPES),
        "an agent name of 1 MB": _set(agent_name=HUGE),
        "an owner's name with a zero byte": _set(owner_username="a\0b"),
        "a workspace name with an equals sign": _set(workspace_name="A=B"),
        "a proxy URI of escape sequences": _set(vs_code_port_proxy_uri=ESCAPES),
        "empty": lambda manifest: manifest.Clear(),
    },
    "manifests: directories": {
        "with a zero byte": _set(directory="/a\0b"),
        "that is a file": _set(directory="/etc/passwd"),
        "that is a device": _set(directory="/dev/zero"),
        "that is missing": _set(directory="/nowhere/at/all"),
        "of dots": _set(directory="/../../.."),
        "of another process": _set(directory="/proc/1/root/proc/1/root"),
        "of 1 MB": _set(directory="/" + HUGE),
        "of 4,000 levels": _set(directory="/a" * 4000),
        "of a variable without an end": _set(directory="${HOME"),
        "of variables of variables": _set(directory="$A$B${C}" * 50_000),
        "of another user's home": _set(directory="~root/x"),
        "of escape sequences": _set(directory=ESCAPES),
        "relative": _set(directory="../x"),
        "message of the day with a zero byte": _set(motd_path="/a\0b"),
        "message of the day that never ends": _set(motd_path="/dev/zero"),
    },
    "manifests: variables": {
        "with a zero byte in the value": _env(A="a\0b"),
        "with a zero byte in the name": _env_of("A\0B", "c"),
        "with an equals sign in the name": _env_of("A=B", "c"),
        "without a name": _env_of("", "c"),
        "that load a library": _env(LD_PRELOAD="/nowhere", PYTHONPATH="/nowhere", BASH_ENV="/nowhere"),
        "that name themselves": _env(A="$A$A", PATH="$PATH:$PATH"),
        "that double each other": _env(**{f"V{index}": f"$V{index - 1}$V{index - 1}" for index in range(60)}),
        "of 3 MB": _env(A=HUGE * 3),
        "200,000": lambda manifest: manifest.environment_variables.update({str(n): "" for n in range(MOST)}),
        "without PATH": _env(PATH=""),
        "of the agent itself": _env(CODER_AGENT_TOKEN="x", CODER_AGENT_URL="http://127.0.0.9", HOME="/nowhere"),
    },
    "manifests: secrets": {
        "file with a zero byte": _secret(file_path="/a\0b"),
        "file that is a folder": _secret(file_path="/"),
        "file without a folder's right": _secret(file_path="/proc/x/y"),
        "file of 1 MB": _secret(file_path="/" + HUGE),
        "file that is a full device": _secret(file_path="/dev/full"),
        "variable with an equals sign": _secret(env_name="A=B"),
        "variable with a zero byte": _secret(env_name="A", value=b"a\0b"),
        "variable of broken UTF-8": _secret(env_name="A", value=b"\xff\xfe"),
        "200,000": _many("secrets"),
    },
    "manifests: scripts": {
        "timeout -1 s": _script(-1),
        "timeout of -1 ns": _script(0, -1),
        "timeout 2**63-1": _script(BIG),
        "timeout -2**63": _script(-BIG - 1),
        "timeout of 2**31-1 ns": _script(0, 2**31 - 1),
        "timeout of 1 ns": _script(0, 1),
        "a zero byte": _script(script="true\0"),
        "empty": _script(script=""),
        "an interpreter that is missing": _script(script="#!/nowhere/at/all\n"),
        "an interpreter that is a folder": _script(script="#!/\n"),
        "an interpreter with a zero byte": _script(script="#!/a\0b\n"),
        "an interpreter without a name": _script(script="#!\n"),
        "of 1 MB": _script(script="#" + HUGE),
        "output of escape sequences": _script(script="printf '\\033[2J\\377\\376'"),
        "a log source of 3 bytes": _script(log_source_id=b"abc"),
        "no log source": _script(log_source_id=b""),
        "an id of 1 MB": _script(id=bytes(1_000_000)),
        "a log with a zero byte": _script(log_path="/a\0b"),
        "a relative log with a zero byte": _script(log_path="a\0b"),
        "a log that is a folder": _script(log_path="/"),
        "a log in /proc": _script(log_path="/proc/x/y"),
        "a log that is a full device": _script(log_path="/dev/full", script="echo x"),
        "a log of 1 MB": _script(log_path=HUGE),
        "a log of dots": _script(log_path="../../../../../proc/x"),
        "the same id twice": _both(_script(), _script()),
        "200,000": _many("scripts"),
        "200 at a time": _many("scripts", 200, id=SOURCE, log_source_id=SOURCE, script="true", run_on_start=True),
        "that fills its pipe and leaves it open": _script(script="sleep 60 & exec true", nanos=1),
    },
    "manifests: cron": {
        "text": _cron("hello"),
        "empty fields": _cron(", , , , ,"),
        "a date that never comes": _cron("0 0 0 30 2 *"),
        "a step of zero": _cron("*/0 * * * * *"),
        "a step of 5,000 digits": _cron("*/" + "9" * 5000 + " * * * * *"),
        "100,000 values": _cron(",".join(["0"] * 100_000) + " 0 0 1 1 *"),
        "every 0 s": _cron("@every 0s"),
        "every -5 s": _cron("@every -5s"),
        "every 292 years": _cron("@every 2562047h"),
        "every 9e99 hours": _cron("@every " + "9" * 99 + "h"),
        "a zone of dots": _cron("TZ=../../etc/passwd 0 0 0 1 1 *"),
        "a zone with a zero byte": _cron("TZ=a\0b 0 0 0 1 1 *"),
        "a zone of 1 MB": _cron("TZ=" + HUGE + " 0 0 0 1 1 *"),
        "a zone that is a folder": _cron("TZ=America 0 0 0 1 1 *"),
        "a zone without fields": _cron("TZ=UTC"),
        "zones of zones": _cron("TZ=UTC " * 5000),
    },
    "manifests: applications": {
        "interval 2**63-1": _app(seconds=BIG),
        "interval -2**63": _app(seconds=-BIG - 1),
        "interval of 1 µs": _app(seconds=0, nanos=1000),
        "interval of 1 ns": _app(seconds=0, nanos=1),
        "threshold 2**31-1": _app(threshold=2**31 - 1),
        "threshold -1": _app(threshold=-1),
        "URL of open brackets": _app("http://[::1", 0, 100_000_000),
        "URL with port 99999": _app("http://127.0.0.1:99999/", 0, 100_000_000),
        "URL with a port of letters": _app("http://127.0.0.1:abc/", 0, 100_000_000),
        "URL with a space": _app("http://127.0.0.1:1/a b", 0, 100_000_000),
        "URL with a line break": _app("http://127.0.0.1:1/\r\nX: y", 0, 100_000_000),
        "URL with a zero byte": _app("http://a\0b/", 0, 100_000_000),
        "URL with a label of 64 letters": _app("http://" + "a" * 64 + "/", 0, 100_000_000),
        "URL of a file": _app("file:///etc/passwd", 0, 100_000_000),
        "URL without a host": _app("http:///x", 0, 100_000_000),
        "URL of nothing but a scheme": _app("x", 0, 100_000_000),
        "URL with credentials": _app("http://a:b@127.0.0.1:1/", 0, 100_000_000),
        "URL of letters that are no ASCII": _app("http://127.0.0.1:1/ä\u202e", 0, 100_000_000),
        "host of letters that are no ASCII": _app("http://ä\u202e/", 0, 100_000_000),
        "URL of 1 MB": _app("http://127.0.0.1:1/" + HUGE, 0, 100_000_000),
        "an unknown health": _app(health=77),
        "an unknown sharing level": _app(sharing_level=77),
        "an id of 3 bytes": _app(id=b"abc"),
        "200,000": _many("apps"),
    },
    "manifests: metadata": {
        "interval -1": _metadata(interval=(0, -1)),
        "interval 2**63-1": _metadata(interval=(BIG, 0)),
        "interval -2**63": _metadata(interval=(-BIG - 1, 0)),
        "timeout -1": _metadata(timeout=(0, -1)),
        "timeout 2**63-1": _metadata(timeout=(BIG, 0)),
        "timeout -2**63": _metadata(timeout=(-BIG - 1, 0)),
        "a zero byte": _metadata(script="a\0b"),
        "empty": _metadata(script=""),
        "output without an end": _metadata(script="yes"),
        "output of broken UTF-8": _metadata(script="printf '\\377\\376'"),
        "a key of 1 MB": _metadata(key=HUGE),
        "no key": _metadata(key=""),
        "the same key twice": _both(_metadata(), _metadata()),
        "200,000": _many("metadata"),
        "300 keys": _both(*[_metadata(key=str(n), interval=(0, 0)) for n in range(300)]),
    },
    "manifests: dev containers": {
        "a folder with a zero byte": _container(workspace_folder="/a\0b"),
        "a folder of dots": _container(workspace_folder="../../.."),
        "a folder that looks like an option": _container(workspace_folder="--help"),
        "a description with a zero byte": _container(workspace_folder="/x", config_path="a\0b"),
        "a name of escape sequences": _container(workspace_folder="/x", name=ESCAPES),
        "an id of 3 bytes": _container(workspace_folder="/x", id=b"abc"),
        "a sub-agent of 3 bytes": _container(workspace_folder="/x", subagent_id=b"abc"),
        "the same folder twice": _both(_container(workspace_folder="/x"), _container(workspace_folder="/x")),
        "200,000": _many("devcontainers"),
    },
    "manifests: relay maps": {name: _map(derp_map) for name, derp_map in MAPS.items()},
    "manifests: STUN servers": {name: _direct(derp_map) for name, derp_map in STUN_MAPS.items()},
}
