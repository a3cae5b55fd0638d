"""Requests for terminals: sizes, commands and containers in untrusted form."""

from __future__ import annotations

import json
import struct

import pytest

from coder.api.base.refusals import Invalid
from coder.appproxy.agents.terminals import init_message, read_spec

SESSION = "6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"
REFUSED: tuple[dict[str, str], ...] = (
    *[{"reconnect": text} for text in ("", "x", SESSION[:-1], SESSION + "0", "../" + SESSION, "\x00")],
    *[
        {name: text}
        for name in ("height", "width")
        for text in (
            "-1",
            "65536",
            "9" * 5000,
            "1.5",
            "1e3",
            "0x10",
            " 1",
            "1 ",
            "+1",
            "NaN",
            "\u0661\u0662",
            "1_0",
            "80\x00",
        )
    ],
    *[{"backend_type": text} for text in ("Screen", "screen ", "sh", "buffered\x00", "tmux")],
    *[
        {name: text}
        for name in ("command", "container", "container_user")
        for text in ("\x01" * 20_000, '"' * 40_000, "\\" * 40_000, "x" * 70_000, "\u00e9" * 40_000)
    ],
    {"command": "x" * 30_000, "container": "y" * 30_000, "container_user": "z" * 10_000},
)
TAKEN: tuple[dict[str, str], ...] = (
    {},
    {"height": "0", "width": "0"},
    {"height": "65535", "width": "65535"},
    {"height": "", "width": ""},
    {"command": "x" * 60_000},
    {"command": 'a"; rm -rf / #\n\x00'},
    {"container": "../x"},
    {"container_user": "root"},
    {"command": '","ID":"00000000-0000-0000-0000-000000000000'},
)


@pytest.mark.parametrize("query", REFUSED, ids=lambda query: str(query)[:40])
def test_invalid_spec_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(Invalid) as refused:
        read_spec({"reconnect": SESSION, **query})
    assert refused.value.validations


@pytest.mark.parametrize("query", TAKEN, ids=lambda query: str(query)[:40])
def test_agent_reads_exactly_the_spec(query: dict[str, str]) -> None:
    sent = init_message(read_spec({"reconnect": SESSION, **query}))
    assert struct.unpack("<H", sent[:2])[0] == len(sent) - 2
    read = json.loads(sent[2:])
    assert (read["ID"], read["Command"]) == (SESSION, query.get("command", ""))
    assert (read["Container"], read["ContainerUser"]) == (query.get("container", ""), query.get("container_user", ""))
