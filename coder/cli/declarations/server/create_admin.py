"""Declaration of `coder server create-admin-user`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import option
from coder.cli.declarations.server.builtin_database import RawOption
from coder.cli.declarations.server.direct_database import PostgresAuthOption, postgres_url_option


class ServerCreateAdminUserOptions(PostgresAuthOption, RawOption):
    """Options of `coder server create-admin-user`."""

    username: str = option(
        "",
        "User name of the new user; prompted for if not set.",
        env="CODER_USERNAME",
    )
    email: str = option(
        "",
        "E-mail address of the new user; prompted for if not set.",
        env="CODER_EMAIL",
    )
    password: str = option(
        "",
        "Password of the new user; prompted for twice if not set.",
        env="CODER_PASSWORD",
        secret=True,
    )
    ssh_keygen_algorithm: str = option(
        "ed25519",
        "Algorithm of the Git SSH key to generate for the user.",
        env="CODER_SSH_KEYGEN_ALGORITHM",
    )
    postgres_url: str = postgres_url_option(running=True)


CREATE_ADMIN = Command(
    words="server create-admin-user",
    summary="Create a user with the owner role, when no owner can log in",
    options=ServerCreateAdminUserOptions,
    max_args=0,
    examples=(
        (
            "Create an owner when no owner can log in",
            "coder server create-admin-user --username root --email root@example.com",
        ),
    ),
)
