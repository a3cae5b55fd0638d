"""Scripts that start agents: their content, and the exits of the POSIX ones on hostile machines."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from coder.domain.agents.init_scripts import PLATFORMS, attach_command, content_digest, init_script


@pytest.mark.parametrize(("system", "arch"), PLATFORMS)
def test_platform_scripts_have_no_placeholders(system: str, arch: str) -> None:
    script = init_script(system.upper(), arch, "https://coder.example.com")
    assert script is not None
    suffix = ".exe" if system == "windows" else ""
    assert f"https://coder.example.com/bin/coder-{system}-{arch}{suffix}" in script
    for name in ("ACCESS_URL", "ARCH", "AUTH_TYPE"):
        assert "${" + name + "}" not in script
    if system != "windows":
        assert "'" not in script, "templates put it between single quotes"


@pytest.mark.parametrize("platform", [("linux", "mips"), ("darwin", "armv7"), ("windows", "armv7"), ("plan9", "amd64")])
def test_unknown_platforms(platform: tuple[str, str]) -> None:
    assert init_script(*platform, "https://x") is None


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_script_parses_as_posix_shell(system: str) -> None:
    script = init_script(system, "arm64", "https://x")
    assert script is not None
    shell = shutil.which("dash") or "/bin/sh"
    subprocess.run([shell, "-n"], input=script.encode(), check=True)


def test_digest_is_hex_of_base64() -> None:
    text = base64.b64encode(hashlib.sha256(b"body").digest())
    assert content_digest(b"body") == "sha256:" + text.hex()


def test_commands() -> None:
    assert attach_command("https://x/", "linux", "amd64", "T") == (
        'curl -fsSL "https://x/api/v2/init-script/linux/amd64" | CODER_AGENT_TOKEN="T" sh'
    )
    assert attach_command("https://x", "windows", "arm64", "T") == (
        '$env:CODER_AGENT_TOKEN="T"; iwr -useb "https://x/api/v2/init-script/windows/arm64" | iex'
    )


def test_windows_script_recommends_no_wheel() -> None:
    for system, arch in PLATFORMS:
        script = init_script(system, arch, "https://x")
        assert script is not None
        assert ("pipx" in script) is (system != "windows")
        assert ("--platform windows-amd64" in script) is (system == "windows")


# ---- runs, with a curl that copies a file and a sleep that returns

RUNS = (
    b'#!/bin/sh\n[ "$1" = agent ] || { echo "Coder v0"; exit; }\n'
    b'echo "it runs in $PWD"\necho "made: $CODER_AGENT_REMOVE_PROGRAM"\n'
)
HERE = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "armv7"}.get(platform.machine(), "amd64")
"""Platform name of the machine the tests run on."""
MOUNTS = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="only root mounts")


def started(
    folder: Path,
    program: bytes,
    *,
    arch: str = HERE,
    mounts: str = "",
    uname: str = "",
    sleeps: str = "exit 0",
    curl: str = "",
    tools_of_system: tuple[str, ...] = (),
    **more: str,
) -> tuple[int, str]:
    """Return exit code and output of the script, with TMPDIR and HOME below `folder`; `mounts` exist for it alone,
    `more` is added to its environment."""
    tools = folder / "tools"
    for created in (tools, folder / "tmp", folder / "home"):
        created.mkdir()
    for name in ("sh", "mktemp", "chmod", "head", "id", "cat", "uname", "rm", "rmdir", *tools_of_system):
        result = shutil.which(name)
        assert result is not None
        (tools / name).symlink_to(result)
    (folder / "program").write_bytes(program)
    own = {"curl": curl or f'while [ "$1" != -o ]; do shift; done; cat "{folder}/program" >"$2"', "sleep": sleeps}
    if uname:
        (tools / "uname").unlink()
        own["uname"] = f"echo {uname}"
    for name, body in own.items():
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    script = init_script("linux", arch, "https://coder.example.com")
    assert script is not None
    env = {
        "PATH": str(tools),
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "CODER_AGENT_TOKEN": "t",
        **more,
    }
    command = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in env.items()), "sh"]
    if mounts:
        tmp, home = env["TMPDIR"], env["HOME"]
        command = ["unshare", "-m", "sh", "-ec", f'TMP={tmp} HOME={home}\n{mounts}\nexec "$@"', "sh", *command]
    done = subprocess.run(command, input=script.encode(), capture_output=True, check=False, cwd="/", timeout=60)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def test_valid_program_is_started(tmp_path: Path) -> None:
    code, output = started(tmp_path, RUNS)
    (folder,) = (tmp_path / "tmp").iterdir()
    assert code == 0 and output.startswith(f"it runs in {folder}\n"), output


@MOUNTS
@pytest.mark.parametrize(
    ("mounts", "where"),
    [
        ("mount -t tmpfs -o noexec none $TMP; mount -t tmpfs none /var/tmp", "/var/tmp/coder."),
        ("mount -t tmpfs -o ro none $TMP; mount -t tmpfs -o noexec none /var/tmp", "HOME/.coder."),
        (
            "mount -t tmpfs -o size=4k none $TMP; echo 1 >$TMP/full; mount -t tmpfs -o ro none /var/tmp",
            "HOME/.coder.",
        ),
    ],
    ids=["noexec", "read-only", "full"],
)
def test_noexec_folder_is_skipped(mounts: str, where: str, tmp_path: Path) -> None:
    code, output = started(tmp_path, RUNS, mounts=mounts)
    assert code == 0 and output.startswith(f"it runs in {where.replace('HOME', str(tmp_path / 'home'))}"), output


@MOUNTS
def test_no_usable_folder_reports_reason(tmp_path: Path) -> None:
    everywhere = "for place in $TMP /var/tmp $HOME; do mount -t tmpfs -o {} none $place; done"
    (tmp_path / "noexec").mkdir()
    code, output = started(tmp_path / "noexec", RUNS, mounts=everywhere.format("noexec"))
    assert code == 2 and "error: its output: " in output and "Permission denied" in output, output
    assert "choose another folder with BINARY_DIR" in output
    (tmp_path / "ro").mkdir()
    code, output = started(tmp_path / "ro", RUNS, mounts=everywhere.format("ro"))
    assert code == 1 and "no folder can be made in" in output and "BINARY_DIR" in output, output


def test_broken_program_reports_reason(tmp_path: Path) -> None:
    """A damaged program reports itself (build/launcher.c), and the shell reports a web page."""
    damaged = b'#!/bin/sh\necho "coder: the program file is damaged; download it again" >&2\nexit 127\n'
    for name, program, why in (("damaged", damaged, "download it again"), ("page", b"<html>\n<p>no</p>\n", "yntax")):
        (tmp_path / name).mkdir()
        code, output = started(tmp_path / name, program)
        assert code == 2 and "is not the agent" in output and why in output.partition("error: its output: ")[2], output


def test_another_processor_is_named(tmp_path: Path) -> None:
    code, output = started(tmp_path, b"\x7fELF\2\1\1" + bytes(60), arch="arm64", uname="x86_64")
    assert code == 2 and "this machine is amd64, and this script is for arm64" in output, output
    assert "its output: " not in output, "it would be the program's bytes"


# ---- the server's checksum

INTERRUPTED = 'kill -INT "$PPID"'
"""Replacement of sleep in which a user presses Ctrl+C."""
SUMS = "case $2 in *.sha256) {checksum}; exit;; esac\nwhile [ $1 != -o ]; do shift; done; shift\n"
"A curl; the checksum's request has no other flags."
HALF = """n=$(cat "$STATE" 2>/dev/null || echo 0); echo $((n + 1)) >"$STATE"
if [ "$n" -eq 0 ]; then head -c 20 "$PROGRAM" >"$1"; else cat "$PROGRAM" >"$1"; fi
"""


def fetched(folder: Path, checksum: str, fetch: str = 'cat "$PROGRAM" >"$1"\n', **more: Any) -> tuple[int, str]:
    """Run the script with a server that answers with `checksum`, a shell command; Ctrl+C ends its second try."""
    given: dict[str, Any] = {"PROGRAM": str(folder / "program"), "STATE": str(folder / "state")}
    more = {"tools_of_system": ("sha256sum",), **more}
    return started(folder, RUNS, curl=SUMS.format(checksum=checksum) + fetch, **given, **more)


RIGHT = f"echo {hashlib.sha256(RUNS).hexdigest()}  coder-linux-amd64"
WRONG = f"echo {hashlib.sha256(b'other').hexdigest()}  coder-linux-amd64"


def test_half_download_is_fetched_again(tmp_path: Path) -> None:
    code, output = fetched(tmp_path, RIGHT, HALF)
    assert code == 0 and "it runs in" in output, output
    assert output.count("and the server says") == 1 and hashlib.sha256(RUNS[:20]).hexdigest() in output


def test_wrong_hash_starts_nothing(tmp_path: Path) -> None:
    code, output = fetched(tmp_path, WRONG, sleeps=INTERRUPTED)
    assert code == 130 and "and the server says" in output and "it runs in" not in output, output
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("checksum", "tools"),
    [("exit 22", ("sha256sum",)), ('echo "<html>"', ("sha256sum",)), ("echo abc", ("sha256sum",)), (WRONG, ())],
    ids=["none", "page", "short", "no tool"],
)
def test_missing_checksum_is_no_obstacle(checksum: str, tools: tuple[str, ...], tmp_path: Path) -> None:
    code, output = fetched(tmp_path, checksum, tools_of_system=tools)
    assert code == 0 and "it runs in" in output, output


# ---- its output and its remains


def test_output_is_two_lines_without_trace(tmp_path: Path) -> None:
    (tmp_path / "calm").mkdir()
    code, output = started(tmp_path / "calm", RUNS)
    (folder,) = (tmp_path / "calm/tmp").iterdir()
    assert code == 0 and output.splitlines()[2:] == [
        f"coder: fetching the agent from https://coder.example.com/bin/coder-linux-{HERE} into {folder}",
        "coder: connecting to https://coder.example.com/; this machine is attached as long as this runs",
    ], output
    (tmp_path / "traced").mkdir()
    code, output = started(tmp_path / "traced", RUNS, CODER_INIT_TRACE="1")
    assert code == 0 and "+ exec ./coder agent" in output, output


def test_agent_receives_only_created_folder(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    _, output = started(tmp_path / "made", RUNS)
    (folder,) = (tmp_path / "made/tmp").iterdir()
    assert f"made: {folder}/coder\n" in output
    (tmp_path / "given").mkdir()
    (tmp_path / "mine").mkdir()
    _, output = started(tmp_path / "given", RUNS, BINARY_DIR=str(tmp_path / "mine"))
    assert "made: \n" in output and (tmp_path / "mine/coder").exists()


@pytest.mark.parametrize(("sleeps", "status"), [("exit 0", 2), (INTERRUPTED, 130)], ids=["in the end", "Ctrl+C"])
def test_failed_script_removes_folder(sleeps: str, status: int, tmp_path: Path) -> None:
    code, output = started(tmp_path, b"<html>\n<p>no</p>\n", sleeps=sleeps)
    assert code == status and "waiting a day so that this can be read" in output, output
    assert list((tmp_path / "tmp").iterdir()) == []


@MOUNTS
def test_unusable_folder_is_removed(tmp_path: Path) -> None:
    """Bind-mounted onto itself, so that files created in it are visible outside."""
    mounts = "mount --bind $TMP $TMP; mount -o remount,bind,noexec $TMP; mount -t tmpfs none /var/tmp"
    code, output = started(tmp_path, RUNS, mounts=mounts)
    assert code == 0 and output.startswith("it runs in /var/tmp/coder."), output
    assert list((tmp_path / "tmp").iterdir()) == []
