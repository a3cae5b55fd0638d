"""Names and locations of secrets, and files of several."""

from __future__ import annotations

from coder.domain.people.user_secrets import explain_env_name, explain_file_path, read_pairs


def test_names_and_paths() -> None:
    assert explain_env_name("TOKEN_1") == explain_env_name("") == ""
    assert all(explain_env_name(name) for name in ("1A", "A-B", "path", "CODER_AGENT_TOKEN"))
    assert explain_file_path("~/.x") == explain_file_path("/x/y") == ""
    assert all(explain_file_path(path) for path in ("x", "~x", "/a/../b"))


def test_imported_files() -> None:
    assert read_pairs("env", "# c\nexport A=1\nB='x y'\n\n") == {"A": "1", "B": "x y"}
    assert read_pairs("json", {"A": 1, "B": True}) == {"A": "1", "B": "true"}
    assert isinstance(read_pairs("env", "nothing"), str)
    assert isinstance(read_pairs("json", {"A": [1]}), str)
