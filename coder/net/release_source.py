"""Files of releases: from a folder of this machine or a mounted mirror, or by HTTP with the usual proxies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from coder.base.errors import CoderError
from coder.base.release.location import checked_address, is_address, joined_address, shown_location
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError, NetError
from coder.net.policy import DialPolicy

MAX_REDIRECTS = 5
"""Redirects of one download (ours): hosts of releases send readers on to a storage service, once or twice."""
_REDIRECTS = (301, 302, 303, 307, 308)


def list_location(location: str, list_name: str) -> str:
    """Return the location of the list: of a folder, the file `list_name` in it; of a URL with a final slash, too. Raise
    CoderError `release_source`."""
    if is_address(location):
        parts = checked_address(location)
        return joined_address(location, list_name) if parts.path in {"", "/"} or location.endswith("/") else location
    try:
        path = Path(location.removeprefix("file://")).expanduser()
        return str(path / list_name if path.is_dir() else path)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: the home of an unknown user
        raise _unreadable(location, _reason(error)) from error


def join_location(base: str, reference: str) -> str:
    """Return the location of `reference`, which is relative to the file `base` unless it is complete. Raise CoderError
    `release_source`."""
    if is_address(base):
        return joined_address(base, reference)
    if is_address(reference):
        checked_address(reference)
        return reference
    return str(Path(base).parent / reference.removeprefix("file://"))


def file_of(folder: str, name: str) -> str:
    """Return the location of a file in a folder. Raise CoderError `release_source`."""
    if not is_address(folder):
        return str(Path(folder) / name)
    parts = checked_address(folder)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{name}").geturl()


def read_location(location: str, policy_for: Callable[[str], DialPolicy], limit: int) -> bytes:
    """Return the content of a file or URL, of at most `limit` bytes. Raise CoderError `release_source`."""
    try:
        data = _download(location, policy_for, limit) if is_address(location) else _read(Path(location), limit)
    except HttpError as error:
        raise _unreadable(location, f"the server answered with status {error.status}") from error
    except NetError as error:
        raise _unreadable(location, error.message) from error
    except (OSError, ValueError) as error:
        raise _unreadable(location, _reason(error)) from error
    if len(data) > limit:
        raise _unreadable(location, f"it is larger than {limit} bytes")
    return data


def _read(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        return file.read(limit + 1)


def _download(location: str, policy_for: Callable[[str], DialPolicy], limit: int) -> bytes:
    for _ in range(MAX_REDIRECTS + 1):
        parts = checked_address(location)
        client = BlockingClient(policy_for(f"{parts.scheme}://{parts.netloc}"))
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            answer = client.request("GET", target, expect=(200, *_REDIRECTS), limit=limit)
        finally:
            client.close()
        if answer.status == 200:
            return answer.body
        location = joined_address(location, answer.headers.get("location", ""))
    raise NetError("protocol", f"the server redirects more than {MAX_REDIRECTS} times")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "the address or path is not valid" if isinstance(error, ValueError) else str(error)


def _unreadable(location: str, reason: str) -> CoderError:
    is_remote = is_address(location)
    hint = "Check the address, the proxy and the certificates." if is_remote else "Check the path and its owner."
    return CoderError("release_source", f"{shown_location(location)} cannot be read: {reason}", hint)
