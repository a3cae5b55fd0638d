"""Addresses of releases: which are refused, and that no message repeats a login."""

from __future__ import annotations

import pytest

from coder.base.errors import CoderError
from coder.base.release.location import checked_address, is_address, joined_address, shown_location

LOGIN = "user:s3cret"
REFUSED = {
    f"https://{LOGIN}@mirror/releases.json": "contains a user name or password",
    f"HTTPS://{LOGIN}@mirror/releases.json": "contains a user name or password",
    "https://s3cret@mirror/": "contains a user name or password",
    "https://@mirror/": "contains a user name or password",
    f"ftp://{LOGIN}@mirror/releases.json": "begins with ftp://",
    f"http://{LOGIN}@[": "is not valid",
    f"http://{LOGIN}@mirror:99999999/": "is not valid",
    "http://mirror:0/": "is not valid",
    "http:///releases.json": "is not valid",
    "http://mirror/\0": "is not valid",
    "http://mirror/a b": "is not valid",
    "http://[": "is not valid",
    "file:///etc/passwd": "begins with file://",
    "javascript:alert(1)": "begins with javascript",
}


@pytest.mark.parametrize("address", REFUSED)
def test_unusable_address_is_refused(address: str) -> None:
    for refuse in (checked_address, lambda text: joined_address("https://mirror/releases.json", text)):
        with pytest.raises(CoderError, match=REFUSED[address]) as caught:
            refuse(address)
        assert caught.value.hint and "s3cret" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("base", "reference", "joined"),
    [
        ("https://mirror/releases.json", "v2.35.0", "https://mirror/v2.35.0"),
        ("https://mirror/releases.json", "//other/v2.35.0", "https://other/v2.35.0"),
        ("http://mirror/releases.json", "https://other/v2.35.0", "https://other/v2.35.0"),
        ("http://mirror/releases.json", "http://other:8080/v2.35.0", "http://other:8080/v2.35.0"),
    ],
)
def test_reference_is_joined(base: str, reference: str, joined: str) -> None:
    assert joined_address(base, reference) == joined


@pytest.mark.parametrize("reference", ["http://mirror/v2.35.0", "HTTP://other/"])
def test_reference_never_leaves_tls(reference: str) -> None:
    with pytest.raises(CoderError, match="https address of releases leads to http on"):
        joined_address("https://mirror/releases.json", reference)


@pytest.mark.parametrize(
    ("location", "expected"),
    [("https://m/", True), ("HTTP://m", True), ("ftp://m", True), ("file:///srv", False), ("/srv/a://b", False)],
)
def test_address_or_path(location: str, expected: bool) -> None:
    assert is_address(location) is expected


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        (f"https://{LOGIN}@mirror/a", "https://mirror/a"),
        ("https://mirror/a?x=s3cret#y", "https://mirror/a?***"),
        ("https://mirror/a#s3cret", "https://mirror/a"),
        ("/srv/a?b@c", "/srv/a?b@c"),
        ("/srv/a\0\x1b[2J", "/srv/a??[2J"),
    ],
)
def test_shown_location_has_no_secret(location: str, shown: str) -> None:
    assert shown_location(location) == shown
