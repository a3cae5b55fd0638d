"""Session of the CLI: its config directory, the deployment's URL, the stored token, and API clients."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from coder.base.atomic_file import write_atomically
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.base.secret import Secret
from coder.cli.core.command import Invocation
from coder.cli.core.options import Options
from coder.net.masking import masked
from coder.net.policy import DialPolicy

if TYPE_CHECKING:
    from coder.net.blocking import BlockingClient


def config_dir(invocation: Invocation[Options]) -> Path:
    """Return `--global-config`, or the platform's configuration directory `coderv2`."""
    chosen = invocation.globals.config_dir
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
    """Return the token of the last login ("" for none), from the session file or the keyring."""
    token = read_file(directory, "session")
    if token or not (directory / "session-in-keyring").exists():
        return token
    from coder.cli.core.keyring_store import read_token

    return read_token(directory)


def save_token(directory: Path, url: str, token: str, *, in_keyring: bool) -> None:
    """Store the token of a login, replacing the previous one. Raise CoderError if that fails."""
    from coder.cli.core import keyring_store

    if in_keyring:
        keyring_store.store_token(directory, url, token)
        (directory / "session").unlink(missing_ok=True)
        return
    write_file(directory, "session", token)
    if keyring_store.is_stored(directory):
        keyring_store.delete_token(directory)


def delete_token(directory: Path) -> None:
    """Delete the token on this machine. Raise CoderError if the keyring does not answer."""
    from coder.cli.core import keyring_store

    for name in ("url", "session"):
        (directory / name).unlink(missing_ok=True)
    if keyring_store.is_stored(directory):
        keyring_store.delete_token(directory)


def write_file(directory: Path, name: str, value: str) -> None:
    """Write a private file (0600) atomically, so that a killed login keeps the old session intact."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(directory / name, value)


def not_logged_in() -> CoderError:
    return CoderError("not_logged_in", f"You are not logged in. Try logging in using '{program()} login <url>'.")


def program() -> str:
    """Return a path of this program that users can run.

    The launcher sets CODER_SELF to its path; in a source checkout the entry point is next to the interpreter.
    """
    own = os.environ.get("CODER_SELF")
    if own:
        return own
    path = Path(sys.argv[0]).absolute() if sys.argv and sys.argv[0] else Path("coder")
    if path.name != "__main__.py":
        return str(path)
    return str(Path(sys.executable).with_name("coder"))


def dial_policy(invocation: Invocation[Options], *, url: str = "", token: str | None = None) -> DialPolicy:
    """Return the dial policy of the selected deployment. Raise CoderError without a deployment or session."""
    directory = config_dir(invocation)
    address = url or invocation.globals.url or read_file(directory, "url")
    if not address:
        raise not_logged_in()
    if token is None:
        token = invocation.globals.token or saved_token(directory)
        if not token:
            raise not_logged_in()
    headers = read_headers(invocation.globals.header, invocation.globals.header_command)
    policy = DialPolicy(url=deployment_url(address), token=Secret(token) if token else None, headers=headers)
    return with_tls_files(policy, invocation)


def with_tls_files(policy: DialPolicy, invocation: Invocation[Options]) -> DialPolicy:
    """Return the policy with the files of `--client-tls-…`."""
    glob = invocation.globals
    return replace(
        policy,
        ca_file=glob.client_tls_ca_file,
        client_cert=glob.client_tls_cert_file,
        client_key=glob.client_tls_key_file,
    )


def deployment_url(text: str) -> str:
    """Return the address of a deployment without a path, query or fragment: users copy a page's address from their
    browser, and paths of the API are absolute. Raise CoderError for an invalid URL."""
    parts = urlsplit(normal_url(text))
    return f"{parts.scheme}://{parts.netloc}"


def normal_url(text: str) -> str:
    """Add a missing scheme: http for loopback, https otherwise. Raise CoderError for an invalid URL."""
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
    except ValueError:  # an invalid bracket, port or host name
        is_one = False
    if not is_one:
        from coder.base.text_faults import url_fault

        fault = url_fault(address) or "not the address of a deployment"
        raise CoderError(
            "bad_url", f'parse raw url "{masked(address)}": {fault}', "Write it like https://coder.example.com"
        )
    return address


def read_headers(pairs: Sequence[str], command: str) -> tuple[tuple[str, str], ...]:
    """Return the headers of `key=value` lines and of a command that prints such lines. Raise CoderError for others."""
    lines = list(pairs)
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
    headers = []
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals:
            raise CoderError("bad_header", f"header {quoted(name)} needs the form key=value")
        headers.append((name.strip(), value.strip()))
    return tuple(headers)


def client(invocation: Invocation[Options]) -> BlockingClient:
    """Return a blocking API client for the current session."""
    from coder.net.blocking import BlockingClient

    return BlockingClient(dial_policy(invocation))
