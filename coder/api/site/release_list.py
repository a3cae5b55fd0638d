"""List of releases that an administrator names: `coder upgrade` and the server's update check read it.

    {"releases": [{"version": "v2.35.0", "folder": "v2.35.0", "notes": "…", "notes_url": "https://…",
                   "schema_revision": "0036", "published_at": "2026-11-28"}]}

`folder` has the files of the release (SHA256SUMS, its signature, the programs), relative to the list. The list itself
is not signed: it can hide a release, and cannot make a program install other bytes than the key's owner signed.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.base.release.location import checked_address
from coder.domain.agents.version_order import canonical, is_newer, is_version

LIST_NAME = "releases.json"
"""Name of the list in a folder of releases."""
MAX_LIST_SIZE = 4 << 20
"""Bytes of a list (ours): a thousand releases with notes of 4 kB."""
MAX_RELEASES = 1000


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """One release of the list."""

    version: str
    """With a leading v, which the list may omit."""
    folder: str
    """URL or path of the release's files, relative to the list."""
    notes: str = ""
    notes_url: str = ""
    """Address for people; the server tells it to any caller."""
    schema_revision: str = ""
    """Newest revision of the database's schema that the release knows; "" if the list does not say."""
    published_at: str = ""


class ReleaseList(msgspec.Struct, frozen=True):
    """Content of a list."""

    releases: list[Release]


def parse_release_list(data: bytes) -> ReleaseList:
    """Parse a list. Raise CoderError `release_list` if it is not one, `release_source` for an unusable address of
    notes."""
    if len(data) > MAX_LIST_SIZE:
        raise _invalid(f"it is larger than {MAX_LIST_SIZE >> 20} MiB")
    try:
        parsed = msgspec.json.decode(data, type=ReleaseList)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(str(error)) from None
    if len(parsed.releases) > MAX_RELEASES:
        raise _invalid(f"it has more than {MAX_RELEASES} releases")
    return ReleaseList([_checked(release) for release in parsed.releases])


def _checked(release: Release) -> Release:
    if not is_version(release.version):
        raise _invalid(f"{quoted(release.version[:80])} is no version")
    if release.notes_url:
        checked_address(release.notes_url)
    return msgspec.structs.replace(release, version=canonical(release.version))


def _invalid(reason: str) -> CoderError:
    return CoderError("release_list", f"the list of releases is invalid: {reason}", "Check the file of the list.")


def newest_release(releases: Iterable[Release], current: str) -> Release | None:
    """Return the newest release after `current`; None if there is none. A release offers no pre-releases, as semver.org
    2.0.0 orders them (its rule 9)."""
    found: Release | None = None
    for release in releases:
        is_wanted = "-" in current or "-" not in release.version.partition("+")[0]
        if is_wanted and is_newer(release.version, current) and (not found or is_newer(release.version, found.version)):
            found = release
    return found


def find_release(releases: Iterable[Release], version: str) -> Release | None:
    """Return the release of a version, which users also write without its "v"."""
    wanted = canonical(version)
    return next((release for release in releases if release.version == wanted), None)


def releases_between(releases: Iterable[Release], current: str, target: Release) -> list[Release]:
    """Return the releases after `current` up to `target`, newest first: their notes are what an upgrade changes."""
    chosen: list[Release] = []
    for release in releases:
        if is_newer(release.version, current) and not is_newer(release.version, target.version):
            position = sum(is_newer(other.version, release.version) for other in chosen)
            chosen.insert(position, release)
    return chosen
