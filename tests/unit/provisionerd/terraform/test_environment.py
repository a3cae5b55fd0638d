"""Environment of terraform processes, and its log lines."""

from __future__ import annotations

from coder.provisionerd.terraform.environment import explain


def test_explain_redacts_secrets() -> None:
    given = {"PATH": "/bin", "TF_CLI_CONFIG_FILE": "/etc/rc", "TF_VAR_password": "hidden", "TF_TOKEN_x_y": "hidden"}
    assert explain(given) == [
        "terraform environment variable: TF_CLI_CONFIG_FILE=/etc/rc",
        "terraform environment variable: TF_TOKEN_x_y=<value redacted>",
        "terraform environment variable: TF_VAR_password=<value redacted>",
    ]
