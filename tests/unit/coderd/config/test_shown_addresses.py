"""Logins and tokens in the addresses of settings: no place that shows settings shows them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coder.base.config import Inputs
from coder.base.errors import CoderError, explain_error
from coder.cli.core.parsing import option_report, parse
from coder.cli.declarations.program.upgrade import UPGRADE
from coder.cli.declarations.server.server import SERVER
from coder.cli.server import server
from coder.coderd.config.options import OPTIONS
from coder.coderd.config.reading import server_config
from coder.coderd.services.foundation.context import Context
from coder.coderd.services.site.deployment_config import configuration
from coder.coderd.services.telemetry.profiles import command_line
from coder.domain.access.policy import Subject

ADDRESSES = [option.flag for option in OPTIONS if not option.secret and option.kind == "url"]
QUERY = "https://mirror.example/a?token=s3cret"
LOGIN = "https://user:s3cret@mirror.example/a"
Shown = tuple[pytest.MonkeyPatch, pytest.CaptureFixture[str]]


def api(arguments: list[str], _: Shown) -> str:
    flags = dict(argument.removeprefix("--").split("=", 1) for argument in arguments)
    config = server_config(Inputs(flags=flags), Path("/nowhere"))
    context = cast("Context", SimpleNamespace(config=config, access_url="http://coder.example"))
    return json.dumps(configuration(context, Subject("user", site_roles=frozenset({"owner"}))))


def debug_options(arguments: list[str], _: Shown) -> str:
    return option_report(parse(SERVER, arguments, {"HOME": "/nowhere"}))


def written_config(arguments: list[str], shown: Shown) -> str:
    assert server._run(parse(SERVER, [*arguments, "--write-config"], {"HOME": "/nowhere"})) == 0
    out, err = shown[1].readouterr()
    assert "is left out, because its address contains a secret" in err
    return out + err


def processes_arguments(arguments: list[str], shown: Shown) -> str:
    shown[0].setattr(sys, "argv", ["coder", "server", *arguments])
    return "\n".join(command_line())


@pytest.mark.parametrize("show", [api, debug_options, written_config, processes_arguments])
@pytest.mark.parametrize(
    "argument",
    [f"--release-list={QUERY}", *(f"--{flag}={value}" for flag in ADDRESSES for value in (QUERY, LOGIN))],
    ids=lambda text: text.partition("s3cret")[0].replace("https://", ""),
)
def test_secret_of_an_address_is_never_shown(
    argument: str,
    show: Callable[[list[str], Shown], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = show([argument], (monkeypatch, capsys))
    assert argument.partition("=")[0].removeprefix("--") in text and "s3cret" not in text


def test_client_masks_the_list_as_well() -> None:
    for value in (QUERY, LOGIN):
        text = option_report(parse(UPGRADE, ["--release-list", value], {"HOME": "/nowhere"}))
        assert "mirror.example" in text and "s3cret" not in text


@pytest.mark.parametrize("value", [LOGIN, "https://user:s3/cret@mirror", "ftp://user:s3cret@mirror", "http://["])
def test_unusable_list_stops_the_server(value: str) -> None:
    with pytest.raises(CoderError, match=r"--release-list: (an|the) (https )?address of releases") as caught:
        server_config(Inputs(flags={"release-list": value}), Path("/nowhere"))
    assert caught.value.code == "bad_option" and "cret" not in f"{caught.value} {caught.value.hint}"


def invalid(flag: str) -> Any:
    return server_config(Inputs(flags={flag: "https://user:s3cret@[/"}), Path("/nowhere"))


@pytest.mark.parametrize("flag", ADDRESSES)
def test_error_of_an_address_has_no_login(flag: str) -> None:
    with pytest.raises(CoderError) as caught:
        invalid(flag)
    assert "s3cret" not in explain_error(caught.value)
