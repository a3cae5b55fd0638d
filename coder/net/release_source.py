"""Files of releases: from a folder of this machine or a mounted mirror, or by HTTP with the usual proxies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from coder.base.errors import CoderError
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError, NetError
from coder.net.policy import DialPolicy

MAX_REDIRECTS = 5
"""Redirects of one download (ours): hosts of releases send readers on to a storage service, once or twice."""
_REDIRECTS = (301, 302, 303, 307, 308)


def is_url(location: str) -> bool:
    return location.startswith(("http://", "https://"))


def list_location(location: str, list_name: str) -> str:
    """Return the location of the list: of a folder, the file `list_name` in it; of a URL with a final slash, too."""
    if is_url(location):
        return (
            urljoin(location, list_name) if urlsplit(location).path in {"", "/"} or location.endswith("/") else location
        )
    path = Path(location.removeprefix("file://")).expanduser()
    return str(path / list_name if path.is_dir() else path)


def join_location(base: str, reference: str) -> str:
    """Return the location of `reference`, which is relative to the file `base` unless it is complete."""
    if is_url(reference):
        return reference
    return urljoin(base, reference) if is_url(base) else str(Path(base).parent / reference.removeprefix("file://"))


def file_of(folder: str, name: str) -> str:
    """Return the location of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}" if is_url(folder) else str(Path(folder) / name)


def read_location(location: str, policy_for: Callable[[str], DialPolicy], limit: int) -> bytes:
    """Return the content of a file or URL. Raise CoderError `release_source`."""
    try:
        data = _download(location, policy_for) if is_url(location) else _read(Path(location), limit)
    except HttpError as error:
        raise _unreadable(location, f"the server answered with status {error.status}") from error
    except NetError as error:
        raise _unreadable(location, error.message) from error
    except OSError as error:
        raise _unreadable(location, error.strerror or type(error).__name__) from error
    if len(data) > limit:
        raise _unreadable(location, f"it is larger than {limit} bytes")
    return data


def _read(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        return file.read(limit + 1)


def _download(location: str, policy_for: Callable[[str], DialPolicy]) -> bytes:
    for _ in range(MAX_REDIRECTS + 1):
        parts = urlsplit(location)
        client = BlockingClient(policy_for(f"{parts.scheme}://{parts.netloc}"))
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            answer = client.request("GET", target, expect=(200, *_REDIRECTS))
        finally:
            client.close()
        if answer.status == 200:
            return answer.body
        following = urljoin(location, answer.headers.get("location", ""))
        if not is_url(following) or (parts.scheme == "https" and not following.startswith("https:")):
            raise NetError("protocol", "the server redirects to an address without TLS, or to none")
        location = following
    raise NetError("protocol", f"the server redirects more than {MAX_REDIRECTS} times")


def _unreadable(location: str, reason: str) -> CoderError:
    hint = "Check the address, the proxy and the certificates." if is_url(location) else "Check the path and its owner."
    return CoderError("release_source", f"{location} cannot be read: {reason}", hint)
