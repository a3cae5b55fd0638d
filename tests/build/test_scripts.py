"""What the commands in scripts/ begin beside themselves ends with them; uv installs what pip was told to."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.paths import ROOT

BASH = [
    path
    for path in (ROOT / "scripts").iterdir()
    if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env bash")
]
IN_BACKGROUND = re.compile(r"(?<![&>])&\s*(?:$|;|\w+=)", re.MULTILINE)
SCRIPT = """
set -euo pipefail
. scripts/environment.sh
work() {{ {python} -c 'import os, signal; os.write(1, b"runs\\n"); signal.pause()'; }}
begin_beside work
begin_beside bash -c "$(declare -f work); work; true"
echo "${{!BESIDE[@]}}"
{then}
"""


def left(groups: list[str]) -> list[str]:
    """Processes of these groups that still run."""
    listed = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [args for group, state, args in rows if group in groups and not state.startswith("Z")]


@pytest.mark.parametrize(
    ("then", "sent", "code"),
    [
        ("die 'no Python'", None, 1),
        ("false", None, 1),
        ("exit 0", None, 0),
        ("", signal.SIGTERM, -15),
        ("", signal.SIGINT, -2),
        ("", signal.SIGHUP, -1),
    ],
)
def test_background_jobs_end_with_script(then: str, sent: signal.Signals | None, code: int) -> None:
    # Who runs the tests may have told its own children to ignore an interrupt.
    script = subprocess.Popen(
        ["env", "--default-signal=INT", "bash", "-c", SCRIPT.format(python=sys.executable, then=f"read -r; {then}")],
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with script:
        assert script.stdout is not None and script.stdin is not None
        said = [script.stdout.readline() for _ in range(3)]
        groups = next(line for line in said if line != "runs\n").split()
        assert said.count("runs\n") == len(groups) == 2 and len(left(groups)) >= 4
        if sent is not None:
            script.send_signal(sent)
        else:
            script.stdin.write("\n")
            script.stdin.flush()
        assert script.stdout.read() == ""  # it ends when the last of them has ended
        assert script.wait() == code
    assert left(groups) == []


def test_awaited_jobs_are_not_killed() -> None:
    then = 'for one in ${!BESIDE[@]}; do kill -- -$one; wait_beside $one || echo $?; done; echo "left:${BESIDE[*]-}"'
    done = subprocess.run(
        ["bash", "-c", SCRIPT.format(python=sys.executable, then=then)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "left:" and done.stdout.count("143\n") == 2


@pytest.mark.parametrize("path", BASH, ids=lambda path: path.name)
def test_scripts_start_jobs_by_begin_beside(path: Path) -> None:
    code = [line.partition(" #")[0] for line in path.read_text().splitlines() if not line.startswith("#")]
    assert not [line for line in code if IN_BACKGROUND.search(line)]


PYTHON = """#!/bin/sh
case "$*" in
*"config list") cat "$LISTED" ;;
*"-m pip"*) echo "pip $*" >>"$CALLS" ;;
*"-m uv"*) { echo uv; env | grep -E '^(UV_|SSL_)'; } >>"$CALLS" ;;
*) exec "$REAL" "$@" ;;
esac
"""
"""Of an environment whose pip and uv only write down what they were told."""


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        ("", set()),
        (":env:.no-index='1'\n:env:.find-links='/a /b'", {"UV_NO_INDEX=true", "UV_FIND_LINKS=/a,/b"}),
        ("global.find-links='\\n/a\\n/b'", {"UV_FIND_LINKS=/a,/b"}),
        ("install.find-links='/c'\nglobal.find-links='/a'", {"UV_FIND_LINKS=/c"}),
        ("install.no-index='true'\n:env:.no-index='no'", set()),
        ("global.index-url='https://a'\n:env:.index-url='https://b'", {"UV_DEFAULT_INDEX=https://b"}),
        ("global.index-url='https://a'\n:env:.index-url=''", {"UV_DEFAULT_INDEX=https://a"}),
        ("install.extra-index-url='https://a\\nhttps://b'", {"UV_INDEX=https://a https://b"}),
        ("global.cert='/ca.pem'\n:env:.default-timeout='9'", {"SSL_CERT_FILE=/ca.pem", "UV_HTTP_TIMEOUT=9"}),
        (":env:.disable-pip-version-check='1'\nlist.format='columns'\nwheel.no-binary=':all:'", set()),
        ("global.trusted-host='a'", None),
        ("install.only-binary=':all:'", None),
        (":env:.proxy='http://a'\n:env:.no-index='1'", None),
    ],
)
def test_uv_gets_pip_settings(listed: str, told: set[str] | None, tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "listed").write_text(listed + "\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "SSL_", "PIP_"))}
    env |= {"CODER_VENV": str(tmp_path), "REAL": sys.executable}
    env |= {name.upper(): str(tmp_path / name) for name in ("listed", "calls")}
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", ". scripts/environment.sh; install_packages what"],
        cwd=ROOT,
        env=env,
        check=True,
    )
    calls = (tmp_path / "calls").read_text().splitlines()
    if told is None:
        (call,) = calls
        assert call.endswith("constraints.txt what")
    else:
        assert calls[0].endswith("constraints.txt uv") and calls[1] == "uv"
        assert set(calls[2:]) == told | {"UV_NATIVE_TLS=true", "UV_NO_PROGRESS=1"}
