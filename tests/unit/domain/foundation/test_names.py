"""Valid names."""

import pytest

from coder.domain.foundation.names import is_display_name, is_name, is_version_name, name_from


@pytest.mark.parametrize("text", ["a", "A1", "my-box", "a" * 32])
def test_names(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize("text", ["", "-a", "a-", "a--b", "a b", "a_b", "a" * 33, "new", "create", "ä", "a\n"])
def test_not_names(text: str) -> None:
    assert not is_name(text)


def test_version_names() -> None:
    assert all(map(is_version_name, ["v2.0.1-rc.1", "happy_mendel9", "a" * 64]))
    assert not any(map(is_version_name, ["", "a b", "a..b", ".a", "a" * 65]))


def test_display_names() -> None:
    assert all(map(is_display_name, ["", "A name, with: everything", "x" * 64]))
    assert not any(map(is_display_name, [" a", "a ", "x" * 65]))


def test_the_nearest_name() -> None:
    assert name_from("My Host.example.com!", "x") == "My-Host-example-com"
    assert name_from("???", "fallback") == "fallback"
    assert name_from("new", "fallback") == "fallback"
