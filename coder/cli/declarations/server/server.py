"""Declaration of `coder server`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options
from coder.coderd.config.options import OPTIONS


class ServerOptions(Options):
    """Settings that are read before the others. All are declared in `coder/coderd/config`."""

    config: str = ""
    write_config: bool = False


SERVER = Command(
    words="server",
    summary="Start a Coder server",
    options=ServerOptions,
    more_options=OPTIONS,
    max_args=0,
    examples=(
        ("Run a server on this machine with a built-in database", "coder server"),
        (
            "Run behind a reverse proxy, with an external database",
            "coder server --access-url https://coder.example.com --http-address 127.0.0.1:3000 --postgres-url "
            "postgres://coder@db.example.com/coder",
        ),
        (
            "Serve HTTPS",
            "coder server --access-url https://coder.example.com --tls-enable --tls-address 0.0.0.0:443 "
            "--tls-cert-file cert.pem --tls-key-file key.pem",
        ),
        (
            "Print the settings as YAML, for a configuration file",
            "coder server --access-url https://coder.example.com --write-config",
        ),
    ),
)
