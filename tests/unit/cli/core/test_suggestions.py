"""Misspelt commands, flags, columns and variables get a suggestion; others get none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coder.base.json_types import Json
from coder.cli.core.command import load
from coder.cli.core.command_table import COMMANDS
from coder.cli.core.options import GLOBAL_OPTIONS
from coder.cli.core.parsing import UsageError, parse
from coder.cli.core.suggestions import misspelt_variables, nearest, plain_fault, quoted_variables, unknown_keys
from coder.coderd.config.options import OPTIONS
from tests.kit.programs.command_line import run_cli


@pytest.mark.parametrize(
    ("line", "suggestion"),
    [
        ("lst", "Did you mean `coder list`?"),
        ("templates psh", "Did you mean `coder templates push`?"),
        ("externl-workspaces", "Did you mean `coder external-workspaces`?"),
        ("list --colum workspace", "Did you mean --column?"),
        ("server --http-adress 127.0.0.1:0", "Did you mean --http-address?"),
        ("list --column worspace", 'Did you mean "workspace"?'),
        ("list -c worspace", 'Did you mean "workspace"?'),
        ("list --output jsn", 'Did you mean "json"?'),
        ("list -o jsno", 'Did you mean "json"?'),
        ("list --gloabl-config x", "Did you mean --global-config?"),
        ("nonsense", ""),
        ("list --nope", ""),
        ("list --column zzz", ""),
    ],
)
async def test_misspelt_words_get_suggestion(line: str, suggestion: str, tmp_path: Path) -> None:
    done = await run_cli(line.split(), home=tmp_path)
    assert done.code == 1
    assert suggestion in done.stderr if suggestion else "Did you mean" not in done.stderr, done.stderr


def test_misspelt_variables_are_found() -> None:
    known = [option.env for option in OPTIONS]
    found = dict(misspelt_variables(dict.fromkeys(("CODER_ACESS_URL", "CODER_HTTP_ADDERSS", "HOME"), "x"), known))
    assert found == {"CODER_ACESS_URL": "CODER_ACCESS_URL", "CODER_HTTP_ADDERSS": "CODER_HTTP_ADDRESS"}
    workspace = ("CODER_WORKSPACE_NAME", "CODER_AGENT_TOKEN", "CODER_AGENT_URL", "CODER_BINARY_CACHE", "CODER_PYTHON")
    assert not list(misspelt_variables(dict.fromkeys((*workspace, *filter(None, known)), "x"), known))


async def test_misspelt_variable_is_warned_of_once(tmp_path: Path) -> None:
    env = {"CODER_SESION_TOKEN": "x", "CODER_URLL": "x", "CODER_WORKSPACE_NAME": "w", "CODER_AGENT_URL": "u"}
    done = await run_cli(["list"], home=tmp_path, env=env)
    assert done.stderr.count("WARN: unknown variables have no effect") == 1, done.stderr
    assert "CODER_SESION_TOKEN (did you mean CODER_SESSION_TOKEN?), CODER_URLL (did you mean CODER_URL?)" in done.stderr
    assert "WORKSPACE_NAME" not in done.stderr and not done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_own_variables_are_no_typos(name: str) -> None:
    """Checks the variables of all commands against those of each: a workspace has many of them."""
    everything = {option.env: "x" for other in COMMANDS for option in load(other).options if option.env}
    known = [option.env for option in (*load(name).options, *GLOBAL_OPTIONS)]
    assert not list(misspelt_variables(everything, known))


@pytest.mark.parametrize(
    ("line", "plain", "step"),
    [
        ("server --provisioner-daemons=abc", '"abc" is not a whole number', "Write a number"),
        ("server --provisioner-daemons=99999999999999999999", "is out of range", "smaller"),
        ("server --tls-enable=maybe", '"maybe" is not a truth value', "true or false"),
        ("server --session-duration=5", '"5" is not a duration', "15m"),
        ("server --session-duration=soon", '"soon" is not a duration', "15m"),
    ],
)
async def test_wrong_values_get_next_step(line: str, plain: str, step: str, tmp_path: Path) -> None:
    done = await run_cli(line.split(), home=tmp_path)
    assert done.code == 1
    text, next_step = plain_fault(done.stderr)
    assert step in next_step
    assert plain in text and "strconv" not in text and "time:" not in text


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_value_of_every_option(name: str) -> None:
    """Checks each option whose kind rejects values: the message names the flag, and a next step follows."""
    command = load(name)
    for option in command.options:
        if option.kind in {"int", "bool", "duration"} and option.flag and option.flag != "help":
            with pytest.raises(UsageError) as caught:
                parse(command, [f"--{option.flag}=no-value"], {})
            plain, step = plain_fault(caught.value.message)
            assert f"--{option.flag}" in plain and step, caught.value.message
            assert "strconv" not in plain and "time:" not in plain


def test_nearest_ignores_case() -> None:
    assert nearest("STATUZ", ["Status", "Healthy"]) == "Status"
    assert nearest("", ["a"]) == ""


def test_quoted_variables_are_found() -> None:
    """Files for `docker --env-file` keep quotation marks."""
    values = {"A": '"x"', "B": "'x'\n", "C": 'x"', "D": '"', "E": '""', "F": "x", "G": "\"x'", "H": '"x"'}
    assert quoted_variables(values, ["A", "B", "C", "D", "E", "F", "G"]) == ["A", "B", "E"]


def test_unknown_keys_of_settings_file() -> None:
    known = [option.yaml for option in OPTIONS]
    written: dict[str, Json] = {}
    for path in filter(None, known):
        *groups, name = path.split(".")
        node: Any = written
        for group in groups:
            node = node.setdefault(group, {})
        node[name] = {"x": 1}
    assert list(unknown_keys(written, known)) == []
    document: dict[str, Json] = {"networking": {"acessURL": "x", "http": None}, "nonsense": 1, "email": "x"}
    assert dict(unknown_keys(document, known)) == {
        "networking.acessURL": "networking.accessURL",
        "nonsense": "",
        "email": "",
    }
