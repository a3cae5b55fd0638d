"""Files by lines, and by search and replace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coder.agent.network import file_edits
from coder.agent.network.file_edits import MAX_RESPONSE, EditError, edited
from coder.agent.network.http_api import HttpApi
from coder.agent.network.http_messages import HttpReply, HttpRequest
from coder.agent.state import AgentState
from coder.agent.workspace.environment import find_identity


async def ask(method: str, route: str, body: Any = None, **query: object) -> HttpReply:
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    wanted = {name: [str(value)] for name, value in query.items()}
    return await HttpApi(state)._answer(HttpRequest(method, f"/api/v0/{route}", wanted, json.dumps(body).encode()))


async def lines(path: Path, **query: object) -> Any:
    reply = await ask("GET", "read-file-lines", path=path, **query)
    assert reply.status == 200
    return json.loads(reply.body)


async def test_lines_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"one\r\ntwo\nthree")
    whole = {"success": True, "file_size": 14, "total_lines": 3, "lines_read": 3}
    assert await lines(path) == whole | {"content": "1\tone\n2\ttwo\n3\tthree"}
    part = await lines(path, offset=2, limit=1)
    assert (part["lines_read"], part["content"]) == (1, "2\ttwo")
    assert (await lines(path, max_line_bytes=2))["content"] == "1\ton [line cut]\n2\ttw [line cut]\n3\tth [line cut]"
    assert (await lines(path, max_response_bytes=12))["lines_read"] == 2
    path.write_text("x" * 500 + "\n")
    path.write_text(path.read_text() * 500)
    assert len((await lines(path))["content"]) <= MAX_RESPONSE
    path.write_bytes(b"")
    assert (await lines(path))["total_lines"] == 0


@pytest.mark.parametrize(
    ("query", "message"),
    [({"offset": 4}, "outside of the file"), ({"offset": -1}, "outside"), ({"max_file_size": 3}, "more than 3")],
)
async def test_read_errors_are_reported(query: dict[str, int], message: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("a\nb\n")
    found = await lines(path, **query)
    assert not found["success"] and message in found["error"]
    assert "No such file" in (await lines(tmp_path / "none"))["error"]
    assert "not a regular file" in (await lines(tmp_path))["error"]
    assert "must be absolute" in (await lines(Path("f")))["error"]


def test_ambiguous_edits_are_rejected() -> None:
    assert edited("a b a", [{"search": "b", "replace": "c"}, {"search": "c", "replace": ""}], "f") == "a  a"
    assert edited("a b a", [{"search": "a", "replace": "x", "replace_all": True}], "f") == "x b x"
    for edits, message in (
        ([], "at least one"),
        ([{"search": "", "replace": "x"}], "search must not be empty"),
        ([{"search": "z", "replace": "x"}], "not found"),
        ([{"search": "a", "replace": "x"}], "2 times"),
    ):
        with pytest.raises(EditError, match=message):
            edited("a b a", edits, "f")


async def test_edits_are_all_or_nothing(tmp_path: Path) -> None:
    one, two, link = tmp_path / "one", tmp_path / "two", tmp_path / "link"
    one.write_bytes(b"alpha\r\nbeta\r\n")
    one.chmod(0o755)
    two.write_text("gamma")
    link.symlink_to(two)

    def files(second: str) -> dict[str, Any]:
        return {
            "include_diff": True,
            "files": [
                {"path": str(one), "edits": [{"search": "beta", "replace": "delta"}]},
                {"path": str(link), "edits": [{"search": second, "replace": "epsilon"}]},
            ],
        }

    refused = await ask("POST", "edit-files", files("absent"))
    assert refused.status == 400 and b"not found" in refused.body
    assert one.read_bytes() == b"alpha\r\nbeta\r\n"
    done = await ask("POST", "edit-files", files("gamma"))
    assert done.status == 200
    assert one.read_bytes() == b"alpha\r\ndelta\r\n" and one.stat().st_mode & 0o777 == 0o755
    assert two.read_text() == "epsilon" and link.is_symlink()
    first, second = json.loads(done.body)["files"]
    assert "-beta\r\n+delta\r\n" in first["diff"]
    assert "-gamma\n\\ No newline at end of file\n+epsilon\n\\ No newline" in second["diff"]
    assert {path.name for path in tmp_path.iterdir()} == {"one", "two", "link"}


@pytest.mark.parametrize("body", [None, {}, {"files": []}, {"files": [{}]}, {"files": [{"path": "/etc/hosts"}]}, [1]])
async def test_invalid_requests_are_rejected(body: Any) -> None:
    assert (await ask("POST", "edit-files", body)).status == 400


async def test_paths_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to(tmp_path / "x")
    reply = await ask("GET", "resolve-path", path=tmp_path / "l")
    assert json.loads(reply.body) == {"resolved_path": str(tmp_path / "x")}
    home = json.loads((await ask("GET", "resolve-path", path="~")).body)["resolved_path"]
    assert home == str(find_identity().home.resolve())
    assert (await ask("GET", "resolve-path")).status == 400


async def test_repeated_file_gets_all_edits(tmp_path: Path) -> None:
    path, other = tmp_path / "f", tmp_path / "other"
    path.write_text("one two")
    other.symlink_to(path)
    files = [
        {"path": str(path), "edits": [{"search": "one", "replace": "1"}]},
        {"path": str(other), "edits": [{"search": "two", "replace": "2"}]},
        {"path": str(path), "edits": [{"search": "1 2", "replace": "1 2 3"}]},
    ]
    reply = await ask("POST", "edit-files", {"files": files, "include_diff": True})
    assert reply.status == 200, reply.body
    assert path.read_text() == "1 2 3" and other.is_symlink()
    assert ["+1 two" in one["diff"] for one in json.loads(reply.body)["files"]] == [True, False, False]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["f", "other"]


async def test_concurrent_edit_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two programs edit one file concurrently: the second is rejected."""
    path = tmp_path / "f"
    path.write_text("one two")
    plain = file_edits.edited

    def slow(*arguments: Any) -> str:
        path.write_text("one two three")
        return plain(*arguments)

    monkeypatch.setattr(file_edits, "edited", slow)
    body = {"files": [{"path": str(path), "edits": [{"search": "two", "replace": "2"}]}]}
    reply = await ask("POST", "edit-files", body)
    assert reply.status == 400 and b"changed by another program" in reply.body
    assert path.read_text() == "one two three"
