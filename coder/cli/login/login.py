"""`coder login`, `logout`, `whoami`: the first user and the session."""

from __future__ import annotations

import sys

from coder.api.access.keys import GenerateAPIKeyResponse
from coder.api.people.passwords import LoginWithPasswordResponse
from coder.api.people.users import User
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.keyring_store import find_keyring
from coder.cli.core.options import Options, YesOption
from coder.cli.declarations.login.login import LOGIN, LOGOUT, TOKEN, LoginOptions
from coder.cli.ui.output import ask, confirm, say
from coder.client.answers import read
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError, NetError
from coder.net.masking import masked

_BUILD_VERSION = "x-coder-build-version"


@implements(LOGIN)
def _login(invocation: Invocation[LoginOptions]) -> int:
    directory = session.config_dir(invocation)
    address = invocation.args[0] if invocation.args else invocation.globals.url
    address = address or session.read_file(directory, "url")
    if not address:
        raise CoderError("login", "login requires a URL", "coder login https://coder.example.com")
    url = session.deployment_url(address)
    if invocation.globals.use_keyring:
        find_keyring()  # before anything is created on the server
    anonymous = BlockingClient(session.dial_policy(invocation, url=url, token=""))
    token = invocation.globals.token
    if not _has_first_user(anonymous, url):
        token = _create_first_user(invocation, anonymous)
    elif token:
        sys.stdout.write(f"Logging in to {masked(url)} with the given token.\n")
        token = _session_from_token(invocation, url, token)
    else:
        token = _session_by_person(invocation, url)
    client = BlockingClient(session.dial_policy(invocation, url=url, token=token))
    user = read(client.request("GET", "/api/v2/users/me"), User)
    session.write_file(directory, "url", url)
    session.save_token(directory, url, token, in_keyring=invocation.globals.use_keyring)
    sys.stdout.write(f"> Welcome to Coder, {user.username}! You're authenticated.\n")
    return 0


def _has_first_user(client: BlockingClient, url: str) -> bool:
    """Return whether the deployment has users. Raises CoderError unless the server says that it is a Coder: the next
    request may carry a password or a token."""
    try:
        answer = client.request("GET", "/api/v2/users/first", expect=(200, 404))
        if not answer.headers.get(_BUILD_VERSION):
            hint = "Is the URL that of a Coder deployment?"
            raise NetError("protocol", "missing build version header, not a coder instance", hint)
    except (NetError, HttpError) as error:
        refused = (
            f'Failed to check server "{url}" for first user, is the URL correct and is coder accessible from your '
            "browser? Error - has initial user"
        )
        raise CoderError("login", refused) from error
    return answer.status == 200


def _create_first_user(invocation: Invocation[LoginOptions], client: BlockingClient) -> str:
    """Prompt for missing values, create the first user as owner and log in. Return the session token."""
    say("Your Coder deployment hasn't been set up! Create the first user.")
    username = invocation.options.first_user_username or ask("What username would you like?", default="admin")
    name = invocation.options.first_user_full_name if invocation.given("first_user_full_name") else ""
    email = invocation.options.first_user_email or ask("What's your email?")
    password = invocation.options.first_user_password
    if not password:
        password = ask("Enter a password:", secret=True)
        if sys.stdin.isatty() and ask("Confirm password:", secret=True) != password:
            raise CoderError("login", "the passwords do not match", "Run the command again.")
    body = {"email": email, "username": username, "name": name, "password": password, "trial": False}
    client.request("POST", "/api/v2/users/first", json=body, expect=(201,))
    return _password_login(client, email, password)


def _password_login(client: BlockingClient, email: str, password: str) -> str:
    answer = client.request("POST", "/api/v2/users/login", json={"email": email, "password": password}, expect=(201,))
    return read(answer, LoginWithPasswordResponse).session_token


def _session_from_token(invocation: Invocation[LoginOptions], url: str, token: str) -> str:
    """Exchange the given token for a new session key, unless it is to be stored itself."""
    if invocation.options.use_token_as_session:
        return token
    client = BlockingClient(session.dial_policy(invocation, url=url, token=token))
    with add_action_to_errors("create api key", f"Create a token at {url}/cli-auth, and give that one."):
        return read(client.request("POST", "/api/v2/users/me/keys", expect=(201,)), GenerateAPIKeyResponse).key


def _session_by_person(invocation: Invocation[LoginOptions], url: str) -> str:
    page = f"{url}/cli-auth"
    sys.stdout.write(f"Open the following in your browser:\n\n\t{page}\n\n")
    if not invocation.globals.no_open and sys.stdin.isatty():
        import webbrowser

        webbrowser.open(page)
    token = ask("Paste your token here:", secret=True)
    check = BlockingClient(session.dial_policy(invocation, url=url, token=token))
    try:
        check.request("GET", "/api/v2/users/me")
    except HttpError as error:
        raise CoderError("login", "That's not a valid token!", f"Copy it from {page}") from error
    return _session_from_token(invocation, url, token)


@implements(TOKEN)
def _token(invocation: Invocation[Options]) -> int:
    policy = session.dial_policy(invocation)
    sys.stdout.write((policy.token.reveal() if policy.token else "") + "\n")
    return 0


_LOGGED_OUT = "You are no longer logged in. You can log in using 'coder login <url>'.\n"


@implements(LOGOUT)
def _logout(invocation: Invocation[YesOption]) -> int:
    directory = session.config_dir(invocation)
    try:
        client = session.client(invocation)
    except CoderError as error:
        if error.code != "not_logged_in":
            raise
        # Editors log out without checking for a session, so that is not an error; the original rejects it.
        sys.stdout.write(_LOGGED_OUT)
        return 0
    confirm(invocation.options.yes, "Are you sure you want to log out?", default=True)
    problems = []
    try:
        client.request("POST", "/api/v2/users/logout")
    except (HttpError, NetError) as error:
        # Delete the local files in any case; an unreachable server must not keep a user logged in on this machine.
        if not (isinstance(error, HttpError) and error.status == 401):
            problems.append(str(error))
    try:
        session.delete_token(directory)
    except CoderError as error:
        raise CoderError("logout", "logged out at the server, but the keyring still contains the token") from error
    if problems:
        raise CoderError("logout", f"logged out here, but not at the server: {'; '.join(problems)}")
    sys.stdout.write(_LOGGED_OUT)
    return 0
