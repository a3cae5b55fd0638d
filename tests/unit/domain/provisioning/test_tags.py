"""Tags: the meaning of no tags, and matches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coder.domain.provisioning.tags import (
    UNTAGGED,
    ExtraTags,
    MissingTag,
    WrongTag,
    explain_mismatch,
    find_tag_fault,
    normalize_tags,
    parse_tag,
    tags_match,
)

ME = "8a0c1d7e-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("given_tags", "whole"),
    [
        (None, {"scope": "organization", "owner": ""}),
        ({}, {"scope": "organization", "owner": ""}),
        ({"scope": "galaxy"}, {"scope": "organization", "owner": ""}),
        ({"scope": "organization", "owner": "someone"}, {"scope": "organization", "owner": ""}),
        ({"scope": "user"}, {"scope": "user", "owner": ME}),
        ({"scope": "user", "owner": "someone"}, {"scope": "user", "owner": ME}),
        ({"a": "b"}, {"scope": "organization", "owner": "", "a": "b"}),
        ({"a": ""}, {"scope": "organization", "owner": ""}),
    ],
)
def test_tags_are_normalized(given_tags: dict[str, str] | None, whole: dict[str, str]) -> None:
    assert normalize_tags(ME, given_tags) == whole


def test_later_layers_win_unless_empty() -> None:
    merged = normalize_tags(ME, {"a": "1", "b": "1"}, {"a": "2", "b": ""})
    assert merged == {**UNTAGGED, "a": "2", "b": "1"}


def whole(**tags: str) -> dict[str, str]:
    return normalize_tags(ME, tags)


@pytest.mark.parametrize(
    ("job", "daemon", "lenient", "strict"),
    [
        (whole(), whole(), True, True),
        (whole(), whole(a="1"), True, False),
        (whole(a="1"), whole(a="1"), True, True),
        (whole(a="1"), whole(a="1", b="2"), True, True),
        (whole(a="1", b="2"), whole(a="1"), False, False),
        (whole(a="1"), whole(a="2"), False, False),
        (whole(a="1"), whole(), False, False),
        (whole(scope="user"), whole(scope="user"), True, True),
        (whole(scope="user"), whole(scope="user", a="1"), True, True),
        (whole(scope="user"), whole(), False, False),
        (whole(), whole(scope="user"), False, False),
        (normalize_tags("other", {"scope": "user"}), whole(scope="user"), False, False),
    ],
)
def test_both_rules(job: dict[str, str], daemon: dict[str, str], lenient: bool, strict: bool) -> None:
    assert tags_match(job, daemon) is lenient
    assert tags_match(job, daemon, strict=True) is strict


def test_reasons_name_key_and_values() -> None:
    assert explain_mismatch(whole(a="1", b="2"), whole(b="3")) == [MissingTag("a", "1"), WrongTag("b", "2", "3")]
    assert explain_mismatch(whole(), whole(a="1"), reservation="strict") == [ExtraTags(("a",))]


_tags = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)


@given(_tags, _tags)
def test_strict_match_implies_lenient(job: dict[str, str], daemon: dict[str, str]) -> None:
    job, daemon = normalize_tags(ME, job), normalize_tags(ME, daemon)
    assert tags_match(job, daemon) == (job.items() <= daemon.items())
    if tags_match(job, daemon, strict=True):
        assert tags_match(job, daemon)


def test_tags_as_text() -> None:
    assert parse_tag("a=b=c") == ("a", "b=c")
    assert parse_tag("a=") == ("a", "")
    assert parse_tag("a") is None


def test_unstorable_tags_are_refused() -> None:
    assert find_tag_fault([("a", "b")]) is None
    assert find_tag_fault([("", "b")]) == ("", "empty key")
    assert find_tag_fault([("a", "b\x00")]) == ("a", "NUL byte")
