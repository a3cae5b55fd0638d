"""Parameter values of a build, and the prompts for them."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from coder.base.errors import CoderError
from coder.cli.command import parse
from coder.cli.main import load
from coder.cli.workspaces.parameter_form import (
    CREATE,
    START,
    UPDATE,
    FormOption,
    FormParameter,
    KnownValues,
    resolve_values,
)
from coder.cli.workspaces.parameters import pairs


def parameter(name: str, **rest: Any) -> FormParameter:
    plain = FormParameter(
        name,
        title=name,
        description="",
        type="string",
        mutable=True,
        ephemeral=False,
        required=False,
        default_value="d",
        value="d",
    )
    return replace(plain, **rest)


class FakeForm:
    """Form that is a function of its inputs and records its requests."""

    def __init__(self, *fixed: FormParameter, swap: bool = False) -> None:
        self.fixed, self.swap = fixed, swap
        self.asked: list[dict[str, str]] = []

    def read(self, inputs: Mapping[str, str]) -> list[FormParameter]:
        self.asked.append(dict(inputs))
        result = [replace(item, value=inputs.get(item.name, item.value)) for item in self.fixed]
        if self.swap and inputs.get("more") == "true":
            result.append(parameter("swap", required=True))
        return [replace(item, problems=("bad",) if item.value == "wrong" else ()) for item in result]


def resolve(
    form: FakeForm, words: str = "", answers: str = "", command: str = "create", **known: Any
) -> dict[str, str]:
    before = sys.stdin
    sys.stdin = io.StringIO(answers)
    try:
        action = {"create": CREATE, "start": START, "update": UPDATE}[command]
        invocation = parse(load(command), ["ws", *words.split()], {})
        result = resolve_values(invocation, form, KnownValues(action, **known))  # type: ignore[arg-type]
    finally:
        sys.stdin = before
    return {item["name"]: item["value"] for item in result}


def test_flags_override_prompts() -> None:
    form = FakeForm(parameter("a"), parameter("b", required=True))
    assert resolve(form, "-y --parameter b=1") == {"b": "1"}
    assert resolve(form, "--use-parameter-defaults --parameter b=1") == {"b": "1"}
    assert resolve(form, "--parameter b=1", answers="typed\n") == {"a": "typed", "b": "1"}
    assert resolve(form, "--parameter b=1", answers="\n") == {"a": "d", "b": "1"}
    assert resolve(form, "--parameter b=1 --parameter-default a=offered", answers="\n")["a"] == "offered"


def test_answers_change_next_prompts() -> None:
    form = FakeForm(parameter("more", type="bool", default_value="false"), swap=True)
    assert resolve(form, answers="yes\n4\n") == {"more": "true", "swap": "4"}
    assert resolve(form, answers="no\n") == {"more": "false"}


def test_rejected_answer_prompts_again() -> None:
    assert resolve(FakeForm(parameter("a")), answers="wrong\nright\n") == {"a": "right"}
    with pytest.raises(CoderError, match="answer it with --parameter"):
        resolve(FakeForm(parameter("a")), answers="wrong\n")


def test_options_by_value_name_or_number() -> None:
    options = (FormOption("Europe", "eu"), FormOption("America", "us", "far"))
    form = FakeForm(parameter("region", options=options))
    for answer in ("us", "America", "2"):
        assert resolve(form, answers=f"{answer}\n") == {"region": "us"}
    many = FakeForm(parameter("tools", type="list(string)", options=options))
    assert resolve(many, answers="1, us\n") == {"tools": '["eu", "us"]'}
    assert resolve(many, answers='["x"]\n') == {"tools": '["x"]'}


def test_preset_values_are_not_prompted() -> None:
    form = FakeForm(parameter("a", required=True))
    assert resolve(form, preset={"a": "p"}) == {}
    assert form.asked[-1] == {"a": "p"}
    assert resolve(form, "--parameter a=mine", preset={"a": "p"}) == {"a": "mine"}
    assert form.asked[-1] == {"a": "p"}


def test_copies_still_valid_values() -> None:
    form = FakeForm(parameter("a"), parameter("eph", ephemeral=True))
    assert resolve(form, copied={"a": "c", "gone": "x", "eph": "old"}) == {"a": "c"}


def test_ephemeral_parameters_require_flag() -> None:
    form = FakeForm(parameter("eph", ephemeral=True))
    assert resolve(form, "-y") == {}
    assert resolve(form, "-y --ephemeral-parameter eph=1") == {"eph": "1"}
    assert resolve(form, "-y --build-option eph=1") == {"eph": "1"}
    assert resolve(form, "--prompt-ephemeral-parameters", answers="2\n") == {"eph": "2"}
    with pytest.raises(CoderError, match="can be used only with --prompt-ephemeral-parameters"):
        resolve(form, "-y --parameter eph=1")


def test_later_builds_keep_values() -> None:
    form = FakeForm(parameter("a"), parameter("fixed", mutable=False))
    had = {"a": "1", "fixed": "f"}
    assert resolve(form, command="start", previous=had) == {}
    assert resolve(form, "--always-prompt", "2\n", command="start", previous=had) == {"a": "2"}
    assert resolve(form, "--parameter fixed=f", command="start", previous=had) == {"fixed": "f"}
    with pytest.raises(CoderError, match='parameter "fixed" is immutable and cannot be updated'):
        resolve(form, "--parameter fixed=g", command="start", previous=had)
    new = FakeForm(parameter("a"), parameter("new", mutable=False), parameter("also", required=True))
    assert resolve(new, answers="n\nx\n", command="update", previous={"a": "1"}) == {"new": "n", "also": "x"}


def test_unknown_parameter_names() -> None:
    form = FakeForm(parameter("region"))
    with pytest.raises(CoderError, match='parameter "regio" is not present') as caught:
        resolve(form, "-y --parameter regio=1")
    assert caught.value.hint == "Did you mean region?"
    with pytest.raises(CoderError, match="must have the form name=value"):
        resolve(form, "-y --parameter region")


def test_lists_keep_their_commas() -> None:
    for words in ('--parameter=tools=["a","b"]', '--parameter="tools=[""a"",""b""]"'):
        values = parse(load("create"), [words], {})["parameter"]
        assert pairs(values, "parameter") == {"tools": '["a","b"]'}
    assert pairs(parse(load("create"), ["--parameter", "a=1,b=2"], {})["parameter"], "parameter") == {
        "a": "1",
        "b": "2",
    }


def test_values_from_a_file(tmp_path: Any) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("a: text\nnumber: 4\nlist: [x, y]\n")
    form = FakeForm(parameter("a"), parameter("number"), parameter("list"))
    result = resolve(form, f"-y --rich-parameter-file {path} --parameter a=flag")
    assert result == {"a": "flag", "number": "4", "list": '["x","y"]'}


def test_file_values_have_parameter_types(tmp_path: Any) -> None:
    """A bool accepts YAML's words from a file; texts and flags are as written."""
    path = tmp_path / "values.yaml"
    path.write_text("yes: yes\nquoted: 'off'\ntext: yes\nn: 010\nflag: yes\n")
    bools = [parameter(name, type="bool") for name in ("yes", "quoted", "flag")]
    form = FakeForm(*bools, parameter("text"), parameter("n", type="number"))
    result = resolve(form, f"-y --rich-parameter-file {path} --parameter flag=yes")
    assert result == {"yes": "true", "quoted": "false", "text": "yes", "n": "010", "flag": "yes"}
    assert all(type(value) is str for asked in form.asked for value in asked.values())


def test_file_word_is_no_change(tmp_path: Any) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("fixed: Yes\n")
    form = FakeForm(parameter("fixed", type="bool", mutable=False))
    words = f"--rich-parameter-file {path}"
    assert resolve(form, words, command="update", previous={"fixed": "true"}) == {"fixed": "true"}
