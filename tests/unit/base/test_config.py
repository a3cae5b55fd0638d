"""Options: secrets that a store made from a file may end in a line break, which no secret means."""

from __future__ import annotations

import pytest

from coder.base.config import Inputs, Option, resolve
from coder.cli.core.options import GLOBAL_OPTIONS
from coder.coderd.config.options import OPTIONS

SECRETS = [option for option in (*OPTIONS, *GLOBAL_OPTIONS) if option.secret and option.env and option.kind == "string"]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("option", SECRETS, ids=lambda option: option.env)
def test_secret_of_environment_loses_its_line_break(option: Option, ending: str) -> None:
    found = resolve([option], Inputs(env={option.env: f" s3cret{ending}"}))
    assert found.values[option.name] == " s3cret"


def test_given_value_is_kept() -> None:
    option = next(option for option in SECRETS if option.flag)
    assert resolve([option], Inputs(flags={option.flag: "a\n"})).values[option.name] == "a\n"


def test_session_token_is_a_secret() -> None:
    assert "CODER_SESSION_TOKEN" in {option.env for option in SECRETS}
