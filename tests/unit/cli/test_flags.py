"""Every command has the original's flags, short forms, environment variables and defaults."""

from __future__ import annotations

import csv
import re
from datetime import timedelta
from pathlib import Path

import pytest

from coder.base.config import LIST_KINDS, Option
from coder.base.duration import parse_duration
from coder.base.errors import CoderError
from coder.cli.core.command import command_name, load, options_of_groups
from coder.cli.core.command_table import COMMANDS, GROUPS
from coder.cli.core.options import GLOBAL_OPTIONS
from coder.cli.core.parsing import parse
from coder.cli.declarations.network.ssh import SSH
from coder.cli.declarations.workspaces.workspaces import LIST
from tests.kit.paths import DATA, ROOT
from tests.kit.programs.command_line import run_cli

TABLE = DATA / "api" / "recorded" / "cli-flags.tsv"
RECORDED = list(csv.DictReader(TABLE.read_text().splitlines(), delimiter="\t"))
NAMES = {row["command"]: command_name(row["command"].split()) for row in RECORDED}
ROWS = [row | {"command": name} for row in RECORDED if (name := NAMES[row["command"]]) in COMMANDS]
"""Recorded flags of commands that exist here, under any name."""
PARENTS = [row for row in RECORDED if NAMES[row["command"]] == row["command"] and row["command"] in GROUPS]
"""Flags of a group, which apply to each of its commands."""
LEFT_OUT = re.compile(r"ai-.*|disable-chat-sharing")
"""Flags of the server for features it lacks; programs in workspaces and daemons accept all flags."""

OURS = {
    ("agent", "debug-address"),
    ("agent", "prometheus-address"),
    ("agent", "pprof-address"),  # closed by default
    ("agent", "agent-firewall-log-proxy-socket-path"),
    ("agent", "log-dir"),
    ("agent", "script-data-dir"),
    ("create", "automatic-updates"),
    ("external-workspaces create", "automatic-updates"),  # rejected before it is sent
    ("licenses list", "column"),  # the same names in lower case
    ("provisioner start", "cache-dir"),
    ("provisioner start", "poll-interval"),
    ("provisioner start", "poll-jitter"),
    ("templates init", "id"),  # our own starter templates
    ("server", "template-builder-registry-url"),  # templates contain their modules unless a registry is set
    ("server", "update-check"),  # no query unless requested
}
"""Flags whose kind or default differs from the recording, with reasons."""


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
def test_flag_exists(row: dict[str, str]) -> None:
    if row["command"] == "server" and LEFT_OUT.fullmatch(row["flag"]):
        return
    own = load(row["command"]).options if row["command"] in COMMANDS else options_of_groups(row["command"])
    options = {option.flag: option for option in (*GLOBAL_OPTIONS, *own)}
    option = options.get(row["flag"])
    assert option is not None
    assert option.short == row["short"]
    assert option.env == row["env"]
    if (row["command"], row["flag"]) in OURS:
        return
    kind = "|".join(option.choices) or option.kind
    recorded = "struct" if row["type"].startswith("struct[") else row["type"]
    assert (f"[{kind}]" if option.choices and option.kind in LIST_KINDS else kind) == recorded
    assert same_default(option, row["default"])


@pytest.mark.parametrize("row", PARENTS, ids=lambda row: f"{row['command']} --{row['flag']}")
def test_group_flags_apply_to_commands(row: dict[str, str]) -> None:
    children = [name for name in COMMANDS if name.startswith(f"{row['command']} ")]
    for name in children:
        option = next((option for option in load(name).options if option.flag == row["flag"]), None)
        assert option is not None, name
        assert (option.short, option.env, option.kind) == (row["short"], row["env"], row["type"])
    last = children[0].removeprefix(f"{row['command']} ").split()
    assert command_name([*row["command"].split(), f"--{row['flag']}", "x", *last]) == children[0]


def test_recorded_commands_exist() -> None:
    missing = {was for was, name in NAMES.items() if name not in COMMANDS and name != was}
    text = (ROOT / "docs" / "conformance.md").read_text().partition("## Recorded commands that are left out")[2]
    rows = [line.split("|")[1:3] for line in text.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    assert {name for names, _ in rows for name in re.findall("`([^`]+)`", names)} == missing
    assert all(reason.strip() for _, reason in rows)


def test_exceptions_still_differ() -> None:
    for command, flag in OURS:
        (row,) = [row for row in ROWS if (row["command"], row["flag"]) == (command, flag)]
        option = next(option for option in load(command).options if option.flag == flag)
        choices = "|".join(option.choices)
        assert row["type"].strip("[]") != (choices or option.kind) or not same_default(option, row["default"]), flag


@pytest.mark.parametrize("command", ["server", "workspace-proxy server"])
@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("access-url", ":x", 'parse ":x": missing protocol scheme'),
        ("access-url", "http://[::1", "parse \"http://[::1\": missing ']' in host"),
        ("prometheus-address", "nonsense", "address nonsense: missing port in address"),
    ],
)
def test_servers_reject_invalid_address(command: str, flag: str, value: str, message: str) -> None:
    from coder.cli.core.parsing import UsageError

    label = f'invalid argument "{value}" for "--{flag}" flag: {message}'
    with pytest.raises(UsageError, match=re.escape(label)):
        parse(load(command), [f"--{flag}", value], {})
    with pytest.raises(UsageError, match=re.escape(f'"{value}" is not a valid')):
        parse(load(command), [], {f"CODER_{flag.upper().replace('-', '_')}": value})


def test_unknown_flags_and_values() -> None:
    from coder.cli.core.parsing import UsageError

    with pytest.raises(UsageError, match=r'parsing flags \(\[list --nope\]\) for "coder list": unknown flag: --nope'):
        parse(load("list"), ["--nope"], {})
    with pytest.raises(UsageError, match="unknown shorthand flag: 'y' in -y"):
        parse(load("list"), ["-y"], {})
    with pytest.raises(UsageError, match="flag needs an argument"):
        parse(load("list"), ["--search"], {})
    with pytest.raises(UsageError, match=r"parsing flags \(\[ls -ao\]\).*flag needs an argument: 'o' in -o"):
        parse(load("list"), ["-ao"], {}, ["ls", "-ao"])
    with pytest.raises(UsageError, match=r"invalid choice: yaml, should be one of \[table json\]"):
        parse(load("list"), ["-o", "yaml"], {})


def test_flags_override_environment() -> None:
    env = {"CODER_SSH_WAIT": "no", "CODER_URL": "http://env"}
    invocation = parse(SSH, ["--url=http://flag", "ws", "ls", "-la", "--wait"], env)
    assert invocation.globals.url == "http://flag"
    assert (invocation.options.wait, invocation.sources["wait"]) == ("no", "env")
    assert invocation.args == ["ws", "ls", "-la", "--wait"]


def test_options_between_workspace_and_command() -> None:
    invocation = parse(SSH, ["ws", "--env", "A=b", "--", "cmd", "--flag"], {})
    assert invocation.options.env == ("A=b",)
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
def test_invalid_durations_are_rejected(command: str, flag: str, text: str, least: str) -> None:
    with pytest.raises(CoderError, match=f"{flag}: {text} is less than {least}"):
        parse(load(command), ["dev", flag, text], {})


def test_combined_switches_and_choice_case() -> None:
    invocation = parse(LIST, ["-aoJSON", "-c", "Workspace,STATUS"], {})
    assert (invocation.options.all, invocation.options.output) == (True, "json")
    assert invocation.options.column == ("workspace", "status")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("list x", "wanted no args but got 1 [x]"),
        ("show", "wanted 1 args but got 0 []"),
        ("autoupdate w", "wanted 2 args but got 1 [w]"),
        ("stat nope", 'unrecognized subcommand "nope"'),
        ("schedule start w", "wanted between 2 and 4 args but got 1"),
        ("organizations members edit-roles", "wanted at least 1 args but got 0"),
    ],
)
async def test_wrong_argument_counts(line: str, message: str, tmp_path: Path) -> None:
    result = await run_cli(line.split(), home=tmp_path)
    assert (result.code, result.stderr.splitlines()[1]) == (1, f"error: {message}")


@pytest.mark.parametrize("line", ["--nope", "users --nope", "organizations settings show --nope"])
async def test_unknown_group_flags(line: str, tmp_path: Path) -> None:
    result = await run_cli(line.split(), home=tmp_path)
    name = " ".join(["coder", *line.split()[:-1]])
    assert (result.code, result.stderr) == (1, f'parsing flags ([{line}]) for "{name}": unknown flag: --nope\n')
