"""Declarations of `coder login`, `coder login token` and `coder logout`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, YesOption, option


class LoginOptions(Options):
    """Options of `coder login`."""

    first_user_email: str = option(
        "",
        "E-mail address of a new deployment's first user; prompted for if not set.",
        env="CODER_FIRST_USER_EMAIL",
    )
    first_user_full_name: str = option(
        "",
        "Full name of a new deployment's first user.",
        env="CODER_FIRST_USER_FULL_NAME",
    )
    first_user_password: str = option(
        "",
        "Password of a new deployment's first user; prompted for if not set.",
        env="CODER_FIRST_USER_PASSWORD",
        secret=True,
    )
    first_user_trial: bool = option(
        False,
        "Accepted for compatibility, without effect: no feature requires a trial.",
        env="CODER_FIRST_USER_TRIAL",
    )
    first_user_username: str = option(
        "",
        "User name of a new deployment's first user; prompted for if not set.",
        env="CODER_FIRST_USER_USERNAME",
    )
    use_token_as_session: bool = option(
        False,
        "Store the given token as the session instead of exchanging it for a new one.",
    )


LOGIN = Command(
    words="login",
    summary="Authenticate with a Coder deployment",
    options=LoginOptions,
    usage="[<url>]",
    max_args=1,
    examples=(
        ("Log in with the browser", "coder login https://coder.example.com"),
        (
            "Log in with a token, without a browser",
            "coder login https://coder.example.com --token abcdefghij-0123456789abcdefghijkl",
        ),
        ("Log in to the last deployment again", "coder login"),
    ),
)

TOKEN = Command(
    words="login token",
    summary="Print the current session token",
    options=Options,
    max_args=0,
    examples=(("Print the session token, for a script", "coder login token"),),
)

LOGOUT = Command(
    words="logout",
    summary="Unauthenticate your local session",
    options=YesOption,
    max_args=0,
    examples=(
        ("Delete the session locally and on the server", "coder logout"),
        ("Log out without a prompt", "coder logout -y"),
    ),
)
