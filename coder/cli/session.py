"""Who the CLI is: its config directory, the deployment's URL, the saved token, and clients made of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.base.secret import Secret
from coder.base.whole_file import write_whole
from coder.cli.command import Invocation
from coder.net.policy import DialPolicy

if TYPE_CHECKING:
    from coder.net.blocking import BlockingClient


def config_dir(invocation: Invocation) -> Path:
    """`--global-config`, else the platform's place for `coderv2`."""
    chosen = invocation.globals["config_dir"]
    return Path(chosen).expanduser() if chosen else default_config_dir()


def default_config_dir() -> Path:
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "coderv2"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", home)) / "coderv2"
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else home / ".config") / "coderv2"


def read_file(directory: Path, name: str) -> str:
    try:
        return (directory / name).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise CoderError("config", f"cannot read {directory / name}") from error


def saved_token(directory: Path) -> str:
    """The token of the last login, "" for none: of the session file, else of the keyring where login put it there."""
    token = read_file(directory, "session")
    if token or not (directory / "session-in-keyring").exists():
        return token
    from coder.cli.keyring_store import read_token

    return read_token(directory)


def save_token(directory: Path, url: str, token: str, *, in_keyring: bool) -> None:
    """Keeps the token of a login; the former one goes. Raises CoderError where it cannot."""
    from coder.cli import keyring_store

    if in_keyring:
        keyring_store.keep_token(directory, url, token)
        (directory / "session").unlink(missing_ok=True)
        return
    write_file(directory, "session", token)
    if keyring_store.is_kept(directory):
        keyring_store.forget_token(directory)


def forget_token(directory: Path) -> None:
    """Logs out on this machine. Raises CoderError when the keyring does not answer."""
    from coder.cli import keyring_store

    for name in ("url", "session"):
        (directory / name).unlink(missing_ok=True)
    if keyring_store.is_kept(directory):
        keyring_store.forget_token(directory)


def write_file(directory: Path, name: str, value: str) -> None:
    """Writes a private file (0600) atomically, so that a killed login leaves the old session whole."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(directory / name, value)


def not_logged_in() -> CoderError:
    return CoderError("not_logged_in", f"You are not logged in. Try logging in using '{program()} login <url>'.")


def program() -> str:
    """A path under which a person can start us again.

    The launcher names itself in CODER_SELF; from a source checkout it is the entry point beside the interpreter.
    """
    own = os.environ.get("CODER_SELF")
    if own:
        return own
    given = Path(sys.argv[0]).absolute() if sys.argv and sys.argv[0] else Path("coder")
    if given.name != "__main__.py":
        return str(given)
    return str(Path(sys.executable).with_name("coder"))


def dial_policy(invocation: Invocation, *, url: str = "", token: str | None = None) -> DialPolicy:
    """The policy for the chosen deployment. Raises CoderError when no deployment or session is known."""
    directory = config_dir(invocation)
    address = url or invocation.globals["url"] or read_file(directory, "url")
    if not address:
        raise not_logged_in()
    if token is None:
        token = invocation.globals["token"] or saved_token(directory)
        if not token:
            raise not_logged_in()
    headers = read_headers(invocation.globals["header"], invocation.globals["header_command"])
    policy = DialPolicy(url=normal_url(address), token=Secret(token) if token else None, headers=headers)
    return with_tls_files(policy, invocation)


def with_tls_files(policy: DialPolicy, invocation: Invocation) -> DialPolicy:
    """The policy with the files of `--client-tls-…`."""
    glob = invocation.globals
    return replace(
        policy,
        ca_file=glob["client_tls_ca_file"],
        client_cert=glob["client_tls_cert_file"],
        client_key=glob["client_tls_key_file"],
    )


def normal_url(text: str) -> str:
    """Adds a scheme where none is given: http for loopback, https otherwise. Raises CoderError for no URL at all."""
    from urllib.parse import urlsplit

    address = text.strip().rstrip("/")
    if "://" not in address:
        bare = address.split("/")[0].split(":")[0]
        address = f"{'http' if bare in {'localhost', '127.0.0.1', '[', '0.0.0.0'} else 'https'}://{address}"
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        if not host.isascii():
            host.encode("idna")
        is_one = parts.scheme in {"http", "https"} and host != "" and parts.port != 0 and " " not in parts.netloc
    except ValueError:  # a bracket or a port that is none, a name that no name server could be asked for
        is_one = False
    if not is_one:
        from coder.base.text_faults import url_fault

        wrong = url_fault(address) or "not the address of a deployment"
        raise CoderError("bad_url", f'parse raw url "{address}": {wrong}', "Write it like https://coder.example.com")
    return address


def read_headers(given: Sequence[str], command: str) -> tuple[tuple[str, str], ...]:
    """Headers of `key=value` lines and of a command that prints such lines. Raises CoderError."""
    lines = list(given)
    if command:
        import subprocess

        done = subprocess.run(  # noqa: S602 - the user's own command line
            command, shell=True, capture_output=True, encoding="utf-8", errors="replace", check=False
        )
        if done.returncode != 0:
            raise CoderError(
                "header_command", f"the header command ended with code {done.returncode}", done.stderr.strip()
            )
        lines += [line for line in done.stdout.splitlines() if line.strip()]
    found = []
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals:
            raise CoderError("bad_header", f"header {quoted(name)} needs the form key=value")
        found.append((name.strip(), value.strip()))
    return tuple(found)


def client(invocation: Invocation) -> BlockingClient:
    """A blocking API client for the current session."""
    from coder.net.blocking import BlockingClient

    return BlockingClient(dial_policy(invocation))
