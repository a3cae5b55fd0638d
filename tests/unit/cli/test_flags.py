"""Every command has the flags, short forms, environment variables and defaults people already use."""

from __future__ import annotations

import csv
from datetime import timedelta

import pytest

from coder.base.config import Option
from coder.base.duration import parse_duration
from coder.base.errors import CoderError
from coder.cli.command import GLOBAL_OPTIONS, parse
from coder.cli.command_table import COMMANDS
from coder.cli.main import load
from tests.kit.paths import DATA

TABLE = DATA / "api" / "recorded" / "cli-flags.tsv"
ROWS = [row for row in csv.DictReader(TABLE.read_text().splitlines(), delimiter="\t") if row["command"] in COMMANDS]

# Flags of features this product leaves out, or that only make sense for the original's own build.
LEFT_OUT = {
    ("agent", "devcontainers-project-discovery-enable"), ("agent", "devcontainers-discovery-autostart-enable"),
    ("agent", "boundary-log-proxy-socket-path"),
    ("agent", "context-config-path"),
    ("agent", "agent-firewall-log-proxy-socket-path"),
    ("server", "disable-chat-sharing"),
    ("server", "disable-template-builder"),
    ("server", "template-builder-registry-url"),
    ("server", "external-auth-github-default-provider-enable"),
    ("exp mcp server", "socket-path"),  # reports go to the server itself, with the agent's token
}  # fmt: skip


def same_default(option: Option, text: str) -> bool:
    default = option.default
    if isinstance(default, timedelta):
        return default == (parse_duration(text) if text else timedelta())
    if isinstance(default, tuple):
        return ",".join(default) == text or not text
    if isinstance(default, bool):
        return default == (text == "true")
    return str(default) == text or (default in ("", 0) and text in ("", "0"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['command']} --{row['flag']}")
def test_flag_is_there(row: dict[str, str]) -> None:
    if (row["command"], row["flag"]) in LEFT_OUT or row["flag"].startswith("ai"):
        return
    options = {option.flag: option for option in (*GLOBAL_OPTIONS, *load(row["command"]).options)}
    option = options.get(row["flag"])
    assert option is not None
    assert option.short == row["short"]
    assert option.env == row["env"]


def test_unknown_flags_and_values_are_refused_by_name() -> None:
    from coder.cli.command import UsageError

    with pytest.raises(UsageError, match=r'parsing flags \(\[list --nope\]\) for "coder list": unknown flag: --nope'):
        parse(load("list"), ["--nope"], {})
    with pytest.raises(UsageError, match="unknown shorthand flag: 'y' in -y"):
        parse(load("list"), ["-y"], {})
    with pytest.raises(UsageError, match="flag needs an argument"):
        parse(load("list"), ["--search"], {})
    with pytest.raises(UsageError, match=r"invalid choice: yaml, should be one of \[table json\]"):
        parse(load("list"), ["-o", "yaml"], {})


def test_flags_beat_the_environment_and_say_where_they_came_from() -> None:
    env = {"CODER_SSH_WAIT": "no", "CODER_URL": "http://env"}
    invocation = parse(load("ssh"), ["--url=http://flag", "ws", "ls", "-la", "--wait"], env)
    assert invocation.globals["url"] == "http://flag"
    assert (invocation["wait"], invocation.sources["wait"]) == ("no", "env")
    assert invocation.args == ["ws", "ls", "-la", "--wait"]


def test_options_between_workspace_and_command_are_ours() -> None:
    invocation = parse(load("ssh"), ["ws", "--env", "A=b", "--", "cmd", "--flag"], {})
    assert invocation["env"] == ("A=b",)
    assert invocation.args == ["ws", "cmd", "--flag"]


@pytest.mark.parametrize(
    ("command", "flag", "text", "least"),
    [
        ("speedtest", "--time", "-1s", "100ms"),
        ("ping", "--timeout", "0s", "1ms"),
        ("ping", "--wait", "-1s", "0s"),
        ("debug trace", "--time", "-1s", "0s"),
        ("ssh", "--network-info-interval", "0s", "100ms"),
    ],
)
def test_times_that_cannot_be_waited_for_are_refused(command: str, flag: str, text: str, least: str) -> None:
    with pytest.raises(CoderError, match=f"{flag}: {text} is less than {least}"):
        parse(load(command), ["dev", flag, text], {})
