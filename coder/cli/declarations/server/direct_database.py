"""Options of the commands that open the server's database themselves."""

from __future__ import annotations

from coder.cli.core.options import Options, option


def postgres_url_option(env: str = "CODER_PG_CONNECTION_URL", *, running: bool = False) -> str:
    """Return the field `postgres_url`; `running`: the command also works while the built-in database's server runs."""
    return option(
        "",
        f"URL of the database; defaults to the built-in one{'' if running else ', whose server must be stopped'}.",
        env=env,
        secret=True,
    )


class DatabaseOptions(Options):
    """Access to the database, also of commands without the flags."""

    postgres_url: str = ""
    postgres_auth: str = "password"


class PostgresAuthOption(DatabaseOptions):
    """The option `--postgres-connection-auth`."""

    postgres_auth: str = option(
        "password",
        "Authentication method of the database; awsiamrds signs each login with AWS credentials.",
        flag="postgres-connection-auth",
        env="CODER_PG_CONNECTION_AUTH",
        choices=("password", "awsiamrds"),
    )
