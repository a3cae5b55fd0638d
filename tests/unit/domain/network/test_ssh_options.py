from __future__ import annotations

import pytest

from coder.domain.network.ssh_options import ssh_option


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("ServerAliveInterval=30", ("ServerAliveInterval", "30")),
        ("SetEnv=A=b", ("SetEnv", "A=b")),
        ("SetEnv A=b", ("SetEnv", "A=b")),
        (" ServerAliveInterval = 30 ", ("ServerAliveInterval", "30")),
        ("ProxyCommand connect --proxy=here %h %p", ("ProxyCommand", "connect --proxy=here %h %p")),
        ("ForwardAgent yes", ("ForwardAgent", "yes")),
        (" ForwardAgent yes ", ("ForwardAgent", "yes")),
    ],
)
def test_first_separator_ends_name(text: str, setting: tuple[str, str]) -> None:
    assert ssh_option(text) == setting


@pytest.mark.parametrize(
    "text", ["", " ", "=", "ForwardX11", "ForwardX11=", "=yes", "A=b\nHost *", "A b\r", "A=\x1b[2J"]
)
def test_invalid_options(text: str) -> None:
    with pytest.raises(ValueError, match="a name and a value"):
        ssh_option(text)
