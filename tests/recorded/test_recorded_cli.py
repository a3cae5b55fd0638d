"""The recorded command lines, replayed in order against a server with real daemons.

Lines that differ stand in `REASONS` with the reason; docs/conformance.md has the same list for readers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.cli.provisioning.builtin_daemons import builtin_daemons
from tests.kit.agents.scripted_agent import eventually
from tests.kit.paths import ROOT
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.recordings.exchange_replay import load_area
from tests.kit.server.server_in_process import World, running_coderd

pytestmark = [pytest.mark.system, pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not here")]

DATA = Path(__file__).resolve().parents[1] / "data" / "api"
REASONS = {
    2: "the recorded program was the slim one",
    31: "a question without an answer names the flag that answers it instead of EOF",
    36: "the roles come in the order of a Go map",
    84: "our starter templates are others",
    117: "as 31",
    140: "the recorded machine had a program that opens pages, and it failed",
    145: "which daemon did what last is chance",
    148: "the recording had builds by autostart that ours does not have",
    153: "the features of a licence are there without one",
    163: "as 31",
    167: "as 2: the slim program has no database",
    170: "as 31",
    178: "logging out twice is no error here: editors do it",
}
"""Lines that do not match, by number. Who mends one takes it off."""
CHANCE = {36, 145}
"""Of these, lines that may match."""
UNORDERED = {
    55: "members come as a database finds them, without an order",
    57: "the roles come in the order of a Go map",
    96: "the scripts of an agent come in any order",
}
"""Lines whose lists are compared as sets; everywhere else the order is the recorded one."""
NOT_FOR_PEOPLE = re.compile(
    r"Traceback|\bNone\b|datetime\.|<\w+(\.\w+)* object at |UUID\(|\b(True|False)\b|\[\'|\{\'|b\'"
)
"""What a Python program prints when it forgot to say it in words."""
OTHER_NOTICES = {
    64: "the log of an import says where it went wrong in a line of its own",
    65: "as 64",
    **dict.fromkeys(
        (27, 38, 49, 54, 77, 80, 101, 123, 125, 128, 169),
        "a line before the error names what is missing, and near misses",
    ),
    100: "the recording kept no word of what it said",
    105: "as 100",
    132: "as 100",
}
"""Lines whose notices on stderr are more or fewer than the recorded ones."""
CUT = 300
"""Characters the recording kept of a first line."""
AGENT_FROM, AGENT_TO = 126, 139
"""Lines at which a real agent runs in the workspace w1."""
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


def differences(want: Any, got: Any, names: dict[str, str], path: str = "", *, unordered: bool = False) -> list[str]:
    """Placeholders stand for any text or number. `unordered`: lists may have another order."""
    if isinstance(want, dict) and isinstance(got, dict):
        found = [f"{path}/{key} missing" for key in want if key not in got]
        found += [f"{path}/{key} extra" for key in got if key not in want and key not in NEWER]
        for key in (want.keys() & got.keys()) - ANY_WORKER:
            found += differences(want[key], got[key], names, f"{path}/{key}", unordered=unordered)
        return found
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        found = [
            one
            for index, pair in enumerate(zip(want, got, strict=True))
            for one in differences(*pair, names, f"{path}/{index}", unordered=unordered)
        ]
        return [] if found and unordered and same_in_any_order(want, got, names) else found
    if isinstance(want, str):
        want = fill(want, names)
        pattern = ".*".join(re.escape(part) for part in re.split(r"<[a-z-]+(?::\d+)?>", want))
        if isinstance(got, str | int) and re.fullmatch(pattern, str(got), re.DOTALL):
            return []
    return [] if want == got else [f"{path}: {want!r} became {got!r}"[:200]]


def same_in_any_order(want: list[Any], got: list[Any], names: dict[str, str]) -> bool:
    left = list(got)
    for item in want:
        match = next((one for one in left if not differences(item, one, names, unordered=True)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def compare(line: dict[str, Any], result: Result, names: dict[str, str]) -> list[str]:
    if line["note"].startswith("licensed: "):  # refused for want of a licence; here the feature is offered
        return [] if result.code == 0 else [f"exit 0 became {result.code}: {result.stderr[-200:]}"]
    found = [] if line["exit"] == result.code else [f"exit {line['exit']} became {result.code}: {result.stderr[-200:]}"]
    out = [row for row in result.stdout.splitlines() if row.strip()]
    if "stdout_json" in line:
        try:
            printed = json.loads(result.stdout)
            found += differences(line["stdout_json"], printed, names, unordered=line["n"] in UNORDERED)
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
    if "stdout" in line and (code := NOT_FOR_PEOPLE.search(result.stdout)):
        found.append(f"stdout is no human text: {code[0]!r}")
    own_notices = line["n"] in OTHER_NOTICES
    if line.get("stderr") == "non-empty" and not result.stderr.strip() and not own_notices:
        found.append("nothing was said on stderr")
    if "stderr_error" in line:
        errors = result.stderr.rstrip("\n").split("\n")
        error = next((row for row in errors if row.lower().startswith("error:")), None)
        found += differences(line["stderr_error"], error, names, "error")
        cut = len(line["stderr_first_line"]) >= CUT
        first = errors[0][:CUT] if cut else errors[0]
        found += differences(line["stderr_first_line"], first, names, "first line of stderr")
        found += differences(line["stderr_last_line"], errors[-1], names, "last line of stderr")
        if not own_notices:
            found += differences(line["stderr_lines"], len(errors), names, "lines of stderr")
    return found


async def test_recorded_command_lines(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    mismatches: dict[int, list[str]] = {}
    agent: subprocess.Popen[bytes] | None = None
    async with running_coderd(
        first_user=True, provisioner=builtin_daemons, provisioner_daemons=3, cache_dir=tmp_path / "cache"
    ) as world:
        names = await start_state(world, home)
        for row in (DATA / "recorded" / "cli.jsonl").read_text().splitlines():
            line = json.loads(row)
            if "file" in line:
                mismatches |= different_file(line, home)
                continue
            if line["argv"][1:3] == ["organizations", "create"]:
                continue  # with a second organization every later line would have to choose one
            if line["n"] == AGENT_FROM:
                agent = await start_agent(world, home, names)
            words = [fill(word, names) for word in line["argv"][1:]]
            env = {name: fill(value, names) for name, value in line.get("env", {}).items()}
            env.setdefault("PATH", "/nonexistent" if words[0] == "open" else os.environ["PATH"])
            # A session writes to the descriptors themselves, so it needs a process of its own.
            run = run_process if words[0] == "ssh" else run_cli
            result = await run(words, home=home, env=env, stdin=line.get("stdin", ""))
            found = compare(line, result, names)
            if found:
                mismatches[line["n"]] = found
            if line["n"] == AGENT_TO and agent is not None:
                agent.terminate()
                await trio.to_thread.run_sync(agent.wait)
    assert not {number: found for number, found in mismatches.items() if number not in REASONS}
    assert set(REASONS) - CHANCE <= set(mismatches), "what matches now needs no reason"


def different_file(line: dict[str, Any], home: Path) -> dict[int, list[str]]:
    """The SSH configuration written, without comments; paths and the blank lines between hosts aside."""
    rows = (home / "sshconf").read_text().splitlines()
    written = [row for row in rows if row and not row.startswith("#")]
    wanted = [row for row in line["file"] if row]
    found = differences([row.replace("<coder>", "<p>") for row in wanted], written, {})
    return {line["n"]: found} if found else {}


async def run_process(words: list[str], *, home: Path, env: dict[str, str], stdin: str) -> Result:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CODER_", "XDG_"))}
    done = await trio.run_process(
        [sys.executable, "-m", "coder", *words],
        stdin=stdin.encode(),
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        cwd=home,
        env={**kept, "HOME": str(home), "PYTHONPATH": str(ROOT), **env},
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


async def start_agent(world: World, home: Path, names: dict[str, str]) -> subprocess.Popen[bytes]:
    """A real agent of w1, connected and ready."""
    env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token, "PATH": os.environ["PATH"]}
    state = json.loads((await run_cli(["state", "pull", "w1"], home=home, env=env)).stdout)
    agent = next(one for one in state["resources"] if one["type"] == "coder_agent")
    token = agent["instances"][0]["attributes"]["token"]
    (home / "agent").mkdir()
    env = {**os.environ, "HOME": str(home / "agent"), "CODER_AGENT_URL": world.url, "CODER_AGENT_TOKEN": token}
    with (home / "agent.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "coder", "agent"], env=env, stdout=log, stderr=log)

    async def is_ready() -> bool:
        workspace = (await world.get("/api/v2/users/me/workspace/w1")).json()
        agents = [agent for one in workspace["latest_build"]["resources"] for agent in one.get("agents") or ()]
        return any(agent["lifecycle_state"] == "ready" for agent in agents)

    await eventually(is_ready, seconds=60)
    return process
