"""The recorded command lines, replayed in order against a server with real daemons.

What does not match yet is listed and the list may only shrink. Lines that need a running agent are other tests'.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from coder.cli.provisioning.provisioners import builtin_daemons
from tests.kit.cli import Result, run_cli
from tests.kit.coderd import World, running_coderd
from tests.kit.replay import load_area

pytestmark = [pytest.mark.system, pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not here")]

DATA = Path(__file__).resolve().parents[1] / "data" / "api"
KNOWN = DATA / "replay_mismatches_cli.json"
NEEDS_AGENT = {"ssh", "ping", "speedtest", "port-forward", "config-ssh", "netcheck", "support"}
NEWER = {"agents_allowed"}
"""Required by types.schema.json, which is newer than the recordings."""
ANY_WORKER = {"worker_id", "worker_name"}
"""Which daemon took a job is chance."""
PASSWORD = "Rec0rded-Pass!"
LITE = {"main.tf": 'resource "terraform_data" "x" {\n}\n'}


async def start_state(world: World, home: Path) -> dict[str, str]:
    """The users and folders the recording began with; values of its names."""
    names = {"access_url": world.url, "home": str(home), "org.default": world.organization_id}
    names |= {"token.admin": world.token, "user.admin": world.user_id}
    for name in ("alice", "bob"):
        body = {"email": f"{name}@example.com", "username": name, "password": PASSWORD, "user_status": "active"}
        made = await world.post("/api/v2/users", {**body, "organization_ids": [world.organization_id]})
        names[f"user.{name}"] = made.json()["id"]
    names["token.alice"] = await world.login("alice@example.com", PASSWORD)
    folders = {
        "tpl": source("agents", "coder_agent"),
        "full": source("templates", "coder_workspace_preset"),
        "lite": LITE,
        "broken": {"main.tf": 'resource "terraform_data" {\n'},
        "empty": {"README.md": "nothing\n"},
    }
    for folder, files in folders.items():
        (home / folder).mkdir()
        for name, text in files.items():
            (home / folder / name).write_text(text)
    return names


def source(area: str, word: str) -> dict[str, str]:
    """The first recorded template of an area that has the word in it."""
    bodies = (line["request"].get("body_raw") for line in load_area(area))
    return next(body["$tar"] for body in bodies if isinstance(body, dict) and word in str(body.get("$tar")))


def fill(text: str, names: dict[str, str]) -> str:
    return re.sub(r"\{([a-z_.]+)\}", lambda match: names.get(match[1], match[0]), text)


def differences(want: Any, got: Any, names: dict[str, str], path: str = "") -> list[str]:
    """Placeholders stand for any text or number."""
    if isinstance(want, dict) and isinstance(got, dict):
        found = [f"{path}/{key} missing" for key in want if key not in got]
        found += [f"{path}/{key} extra" for key in got if key not in want and key not in NEWER]
        for key in (want.keys() & got.keys()) - ANY_WORKER:
            found += differences(want[key], got[key], names, f"{path}/{key}")
        return found
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        found = [one for index, pair in enumerate(zip(want, got, strict=True))
                 for one in differences(*pair, names, f"{path}/{index}")]  # fmt: skip
        return [] if found and same_in_any_order(want, got, names) else found
    if isinstance(want, str):
        want = fill(want, names)
        pattern = ".*".join(re.escape(part) for part in re.split(r"<[a-z-]+(?::\d+)?>", want))
        if isinstance(got, str | int) and re.fullmatch(pattern, str(got), re.DOTALL):
            return []
    return [] if want == got else [f"{path}: {want!r} became {got!r}"[:200]]


def same_in_any_order(want: list[Any], got: list[Any], names: dict[str, str]) -> bool:
    """People, roles, scripts and what happened within one second come in any order."""
    left = list(got)
    for item in want:
        match = next((one for one in left if not differences(item, one, names)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def compare(line: dict[str, Any], result: Result, names: dict[str, str]) -> list[str]:
    found = [] if line["exit"] == result.code else [f"exit {line['exit']} became {result.code}: {result.stderr[-200:]}"]
    out = [row for row in result.stdout.splitlines() if row.strip()]
    if "stdout_json" in line:
        try:
            found += differences(line["stdout_json"], json.loads(result.stdout), names)
        except ValueError:
            found.append(f"no JSON: {result.stdout[:80]!r}")
    if "stdout_table" in line:
        table = line["stdout_table"]
        columns = re.split(r"\s{2,}", out[0].strip()) if out else []
        found += differences([table["columns"], table["rows"]], [columns, max(len(out) - 1, 0)], names, "table")
    if "stdout_text" in line:
        found += differences(line["stdout_text"].strip("\n"), result.stdout.strip("\n"), names, "stdout")
    if "stdout_first_line" in line:
        found += differences(line["stdout_first_line"], (result.stdout.splitlines() or [""])[0], names, "first line")
    if "stdout" in line and bool(line["stdout"]) != bool(result.stdout):
        found.append(f"stdout: {line['stdout']!r} became {result.stdout[:80]!r}")
    if "stderr_error" in line:
        errors = result.stderr.rstrip("\n").split("\n")
        error = next((row for row in errors if row.lower().startswith("error:")), None)
        found += differences(line["stderr_error"], error, names, "error")
        found += differences(line["stderr_first_line"], errors[0], names, "first line of stderr")
        found += differences(line["stderr_last_line"], errors[-1], names, "last line of stderr")
    return found


async def test_recorded_command_lines(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    mismatches: dict[int, list[str]] = {}
    async with running_coderd(
        first_user=True, provisioner=builtin_daemons, provisioner_daemons=3, cache_dir=tmp_path / "cache"
    ) as world:
        names = await start_state(world, home)
        for row in (DATA / "recorded" / "cli.jsonl").read_text().splitlines():
            line = json.loads(row)
            if "argv" not in line or line["argv"][1] in NEEDS_AGENT:
                continue
            words = [fill(word, names) for word in line["argv"][1:]]
            env = {name: fill(value, names) for name, value in line.get("env", {}).items()}
            env.setdefault("PATH", "/nonexistent" if words[0] == "open" else os.environ["PATH"])
            result = await run_cli(words, home=home, env=env, stdin=line.get("stdin", ""))
            found = compare(line, result, names)
            if found:
                mismatches[line["n"]] = found
    known = json.loads(KNOWN.read_text()) if KNOWN.exists() else []
    if os.environ.get("REPLAY_UPDATE"):
        print("\n".join(f"{number}: {found[:4]}" for number, found in mismatches.items()))
        KNOWN.write_text(json.dumps(sorted(mismatches)) + "\n")
        return
    new = {number: found for number, found in mismatches.items() if number not in known}
    assert not new
