"""Port specifications of users."""

from __future__ import annotations

import pytest

from coder.base.errors import CoderError
from coder.cli.main import main
from coder.cli.network.port_forward import Forward, parse_specs

LOOPBACK = ("127.0.0.1", "::1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8080", [Forward(LOOPBACK, 8080, 8080)]),
        ("8080:3000", [Forward(LOOPBACK, 8080, 3000)]),
        ("1.2.3.4:8080:3000", [Forward(("1.2.3.4",), 8080, 3000)]),
        ("1.2.3.4:8080", [Forward(("1.2.3.4",), 8080, 8080)]),
        ("[::1]:8080:3000", [Forward(("::1",), 8080, 3000)]),
        ("[::]:8080", [Forward(("::",), 8080, 8080)]),
        ("8000,9000:9001", [Forward(LOOPBACK, 8000, 8000), Forward(LOOPBACK, 9000, 9001)]),
        ("10-12:20-22", [Forward(LOOPBACK, near, near + 10) for near in (10, 11, 12)]),
        ("0.0.0.0:10-11", [Forward(("0.0.0.0",), port, port) for port in (10, 11)]),
    ],
)
def test_specifications(text: str, expected: list[Forward]) -> None:
    assert parse_specs([text]) == expected
    assert [forward.protocol for forward in parse_specs([text], "UDP")] == ["UDP"] * len(expected)


@pytest.mark.parametrize("text", ["", "0", "65536", "a", "10-9", "1-3:1-2", "1:2:3:4", "[::1", "-5", "80:"])
def test_invalid_specification_is_quoted(text: str) -> None:
    with pytest.raises(CoderError, match="failed to parse UDP port-forward specification"):
        parse_specs([text], "UDP")


def test_empty_and_duplicate_ports_are_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["port-forward", "dev"]) == 1
    assert "no port-forwards requested" in capsys.readouterr().err
    assert main(["port-forward", "dev", "--tcp", "8080", "--tcp", "8080:9000"]) == 1
    assert "used twice" in capsys.readouterr().err
    # TCP and UDP do not conflict: the next error is the missing login
    assert main(["--global-config", "/nonexistent", "port-forward", "dev", "--tcp", "8080", "--udp", "8080"]) == 1
    assert "not logged in" in capsys.readouterr().err
