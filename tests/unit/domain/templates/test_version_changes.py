"""Differences between versions of a template."""

from __future__ import annotations

import difflib
from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from coder.coderd.store.templates.template_versions import ParameterRow
from coder.domain.templates.version_changes import (
    MAX_BYTES,
    MAX_FILES,
    MAX_LINES,
    MAX_PAIRS,
    compare_files,
    compare_parameters,
)

SIZE = ParameterRow(
    template_version_id=UUID(int=1),
    name="size",
    display_name="Size",
    description="",
    type="string",
    form_type="input",
    mutable=True,
    default_value="small",
    icon="",
    options=[],
    validation_regex="",
    validation_error="",
    validation_min=None,
    validation_max=None,
    validation_monotonic="",
    required=False,
    ephemeral=False,
    display_order=0,
)


def test_parameters_by_kind_of_change() -> None:
    old = [SIZE, replace(SIZE, name="gone"), replace(SIZE, name="same")]
    new = [
        replace(SIZE, default_value="large", mutable=False, description="words"),
        replace(SIZE, name="new", required=True),
        replace(SIZE, name="same", template_version_id=UUID(int=2), display_name="Other words"),
    ]
    changes = [(item.name, item.change, item.fields, item.required) for item in compare_parameters(old, new)]
    assert changes == [
        ("size", "changed", ["mutable", "default_value"], False),
        ("new", "added", [], True),
        ("gone", "removed", [], False),
    ]


def test_files_have_unified_diffs() -> None:
    changes, omitted = compare_files(
        {"main.tf": b"a\nb\n", "old.sh": b"x\n", "same": b"1"}, {"main.tf": b"a\nc\n", "new.sh": b"y\n", "same": b"1"}
    )
    assert [(item.path, item.change) for item in changes] == [
        ("main.tf", "changed"),
        ("new.sh", "added"),
        ("old.sh", "removed"),
    ]
    assert changes[0].diff == "--- a/main.tf\n+++ b/main.tf\n@@ -1,2 +1,2 @@\n a\n-b\n+c"
    assert omitted == 0


def test_files_without_diff_are_named() -> None:
    large = b"x" * (MAX_BYTES + 1)
    long = b"x\n" * (MAX_LINES + 1)
    changes, _ = compare_files({}, {"binary": b"\x00", "latin": b"\xff", "large": large, "long": long})
    assert {item.path: item.diff for item in changes} == {"binary": "", "latin": "", "large": "", "long": ""}


def test_total_of_diffs_is_bounded() -> None:
    content = b"".join(b"%0200d\n" % number for number in range(1000))
    changes, _ = compare_files({}, {"a": content, "b": content})
    assert changes[0].diff and not changes[1].diff
    many = {f"{number:04}": b"x" for number in range(MAX_FILES + 3)}
    some, omitted = compare_files({}, many)
    assert (len(some), omitted) == (MAX_FILES, 3)


LINES = st.lists(st.sampled_from(["a", "b", "@@ -1 +1 @@", ""]), max_size=20)


@given(LINES, LINES, LINES, LINES)
def test_hunks_number_lines_of_whole_file(head: list[str], old: list[str], new: list[str], tail: list[str]) -> None:
    """Equal lines before and after the difference are not compared, but count."""
    before, after = ["h", *head, *old, *tail, "t"], ["h", *head, *new, *tail, "t"]
    changes, _ = compare_files({"f": "\n".join(before).encode()}, {"f": "\n".join(after).encode()})
    diff = changes[0].diff.split("\n")[2:] if changes else []
    assert patched(before, diff) == after
    far = ["x"] * 50
    moved, _ = compare_files({"f": "\n".join(far + before).encode()}, {"f": "\n".join(far + after).encode()})
    assert patched(far + before, moved[0].diff.split("\n")[2:] if moved else []) == far + after


def patched(lines: list[str], diff: list[str]) -> list[str]:
    """Apply a unified diff, whose lines must be those of the file at the place that each hunk names."""
    result: list[str] = []
    at, left, added = 0, 0, 0
    for line in diff:
        if not left and not added:
            old, new = (part[1:].split(",") for part in line.split(" ")[1:3])
            left, added = int(old[1]) if len(old) > 1 else 1, int(new[1]) if len(new) > 1 else 1
            start = int(old[0]) - (1 if left else 0)
            result += lines[at:start]
            at = start
            assert len(result) == int(new[0]) - (1 if added else 0)
            continue
        if line[0] in " -":
            assert lines[at] == line[1:]
            at, left = at + 1, left - 1
        if line[0] in " +":
            result.append(line[1:])
            added -= 1
    return result + lines[at:]


def test_work_of_comparison_is_bounded() -> None:
    """Repeated lines in another order are the slow case: files beyond the limits are named without a diff."""
    slow = [str(number % 101) for number in range(MAX_LINES)], [str(number * 51 % 101) for number in range(MAX_LINES)]
    assert len(slow[0]) * len(slow[1]) > MAX_PAIRS
    old, new = ("\n".join(lines).encode() for lines in slow)
    changes, _ = compare_files({"a": old}, {"a": new})
    assert [(item.change, item.diff) for item in changes] == [("changed", "")]

    old, new = ("\n".join(f"{kind}{number}" for number in range(700)).encode() for kind in "ab")
    changes, _ = compare_files(dict.fromkeys("wxyz", old), dict.fromkeys("wxyz", new))
    assert [bool(item.diff) for item in changes] == [True, True, False, False]
    changes, _ = compare_files({"w": old}, dict.fromkeys("wxyz", old) | {"w": new})
    assert all(item.diff for item in changes)  # added files are compared with nothing


def test_small_edit_of_long_file_has_diff() -> None:
    before = [f"line {number}" for number in range(MAX_LINES)]
    after = [*before[:1500], "other", *before[1501:]]
    changes, _ = compare_files({"a": "\n".join(before).encode()}, {"a": "\n".join(after).encode()})
    assert changes[0].diff.split("\n") == list(difflib.unified_diff(before, after, "a/a", "b/a", lineterm=""))
