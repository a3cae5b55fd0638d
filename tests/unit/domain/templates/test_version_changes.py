"""Differences between versions of a template."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from coder.coderd.store.templates.template_versions import ParameterRow
from coder.domain.templates.version_changes import MAX_BYTES, MAX_FILES, MAX_LINES, compare_files, compare_parameters

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
