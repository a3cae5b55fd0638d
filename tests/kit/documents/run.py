"""Run the shell blocks of the documentation on a real deployment: `scripts/docs --check [PAGE …]`.

All pages share a server; each has a home, a folder and a shell, which runs its lines in order. A line that does not
end (a server, a provisioner) runs in the background until the end of its page, once it has printed the text of ENDLESS.
CODER_TEST_BINARY names the program; without it the sources run.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.documents.blocks import REASONS, Block, Page, pages, placeholders_as_variables
from tests.kit.free_ports import free_port
from tests.kit.paths import ROOT
from tests.kit.server.document_shell import DocumentShell, open_document_shell

ENDLESS = {
    r"coder server(?! [a-z])": "View the Web UI",
    r"coder (provisionerd|provisioner) start": "connected",
    r"coder workspace-proxy server": "Started HTTP listener",
    r"coder port-forward ": "Ready!",
    r"coder agent(?! [a-z])": "connected",
    r"coder ping (?!.*-n)": "pong from",
    r"coder debug trace ": "handshake",
}
"""Commands that do not end, and the text that shows that each works."""
ANSWERED = r"coder (create|start|restart|update|config-ssh|templates (create|push|edit|versions archive))"
"""Commands whose questions a person answers with the Enter key, which chooses the default."""
EXTERNAL = "externally-managed-workspace"
LIMIT = 300
"""Seconds for a page."""
_PROLOGUE = r"""
exec </dev/null
set -o pipefail
_line() { printf '%s\n' "$1" >>"$_log"; _at=$(wc -c <"$_out"); }
_done() { printf '%s %s %s\n' "$1" "$_at" "$(wc -c <"$_out")" >>"$_log"; }
_until() {  # TEXT LOG PROCESS
  for _ in $(seq 600); do
    grep -q -- "$1" "$2" && { cat "$2"; return 0; }
    kill -0 "$3" 2>/dev/null || { cat "$2"; wait "$3"; return $?; }
    sleep 0.1
  done
  cat "$2"; return 124
}
"""


@dataclass(slots=True)
class Line:
    """One logical line with its result."""

    block: Block
    text: str
    status: int | None = None
    output: str = ""

    @property
    def failed(self) -> bool:
        return self.status != self.block.exit


def _substituted(text: str, place: DocumentShell, folder: Path) -> str:
    """Return a line of a document with the addresses and files of this deployment."""
    port = free_port()
    is_server = re.search(r"coder server(?! [a-z])", text)
    if is_server:
        text = re.sub(r"coder server", f"env CODER_CONFIG_DIR={folder}/server-{port} coder server", text)
        text = re.sub(r"--http-address \S+", "", text)
        text += f" --http-address 127.0.0.1:{port} --provisioner-daemons=0" * ("provisioner-daemons" not in text)
        text += f" --http-address 127.0.0.1:{port}" * ("--http-address" not in text)
        text += f" --derp-server-stun-addresses disable --cache-dir {folder}/cache"
        text = re.sub(r"--tls-address \S+", f"--tls-address 127.0.0.1:{free_port()}", text)
        text = re.sub(r"--wireguard-address \S+", f"--wireguard-address 127.0.0.1:{free_port()}", text)
    elif "workspace-proxy server" in text:
        text = re.sub(r"--http-address \S+", f"--http-address 127.0.0.1:{port}", text)
        text = text.replace("--primary-access-url https://coder.example.com", f"--primary-access-url {place.url}")
    else:
        text = re.sub(r"https?://(coder\.example\.com|127\.0\.0\.1:3000|localhost:3000)", place.url, text)
    text = re.sub(r"(?<=[ =])/(etc|opt|backups|srv)/", rf"{folder}/\1/", text)
    return placeholders_as_variables(text)


def _script(page: Page, lines: list[Line], place: DocumentShell, folder: Path) -> str:
    parts = [_PROLOGUE, f"_log={folder}/log _out={folder}/out; : >$_log"]
    number = 0
    for block in page.blocks:
        parts += [_substituted(text, place, folder) for text in block.first]
        for text in [] if block.reason else block.lines():
            lines.append(Line(block, text))
            real = _substituted(text, place, folder)
            until = next((seen for command, seen in ENDLESS.items() if re.search(command, real)), "")
            if until:
                real = (
                    f"{{ {real}\n}} >{folder}/background-{number} 2>&1 &\n"
                    f"_until {shlex.quote(until)} {folder}/background-{number} $!"
                )
            elif re.search(ANSWERED, real) and "<<" not in real:
                real = f"{{ {real}\n}} < <(yes '')"
            parts.append(f"_line {number}\n{real}\n_done $?")
            number += 1
    return "\n".join(parts) + "\n"


def _environment(place: DocumentShell, folder: Path) -> dict[str, str]:
    env = place.env()
    home = folder / "home"
    home.mkdir()
    env |= {"HOME": str(home), "CODER_INSTALL_PREFIX": str(home / "local"), "CODER_CONFIG_DIR": str(home / "config")}
    return env | {"NO_COLOR": "1", "token": place.server.token, "workspace": "hello-world", "owner": "admin"}


def run_page(page: Page, place: DocumentShell) -> list[Line]:
    """Run a page's blocks in order and return the lines with their results."""
    folder = place.server.folder / f"page-{'-'.join(page.path.relative_to(ROOT).with_suffix('').parts)}"
    folder.mkdir()
    for name in ("etc", "opt", "backups", "srv", "work"):
        (folder / name).mkdir()
    lines: list[Line] = []
    script = folder / "script"
    script.write_text(_script(page, lines, place, folder))
    if not lines:
        return lines
    with (folder / "out").open("wb") as output:
        shell = subprocess.Popen(
            ["bash", str(script)],
            env=_environment(place, folder),
            cwd=folder / "work",
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        shell.wait(LIMIT)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _end_group(shell)
    _read_results(folder, lines)
    _clean_up(place, "machine" in page.needs)
    return lines


def _clean_up(place: DocumentShell, kept: bool) -> None:
    """Delete workspaces, templates, organizations and proxies of a page; `kept`: not those of the connected machine."""
    keep = {"hello-world", EXTERNAL} if kept else set()
    for workspace in _request(place, "/api/v2/workspaces")["workspaces"]:
        if workspace["name"] not in keep:
            name = f"{workspace['owner_name']}/{workspace['name']}"
            place.run(f"coder delete {name} --orphan -y || coder delete {name} --abandon -y")
    for template in _request(place, "/api/v2/templates"):
        if template["name"] not in keep:
            place.run(f"coder templates delete {template['name']} --org {template['organization_name']} -y")
    for organization in _request(place, "/api/v2/organizations"):
        if not organization["is_default"]:
            for group in _request(place, f"/api/v2/organizations/{organization['id']}/groups"):
                if group["id"] != organization["id"]:  # that of everyone
                    place.run(f"coder groups delete {group['name']} --org {organization['name']}")
            place.run(f"coder organizations delete {organization['name']} -y")
    for proxy in _request(place, "/api/v2/workspaceproxies")["regions"]:
        if proxy["name"] != "primary":
            place.run(f"coder workspace-proxy delete {proxy['name']} -y")


def _request(place: DocumentShell, path: str) -> Any:
    return place.server.request("GET", path, None, place.server.token)


def _end_group(shell: subprocess.Popen[bytes]) -> None:
    """End the shell and what it left in the background; servers stop their databases themselves."""
    for signal in (15, 9):
        try:
            os.killpg(shell.pid, signal)
        except ProcessLookupError:
            return
        limit = time.monotonic() + 20
        while time.monotonic() < limit:
            shell.poll()
            try:
                os.killpg(shell.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.1)


def _read_results(folder: Path, lines: list[Line]) -> None:
    output = (folder / "out").read_bytes()
    current = -1
    for row in (folder / "log").read_text().splitlines():
        words = row.split()
        if len(words) == 1:
            current = int(words[0])
            continue
        lines[current].status = int(words[0])
        lines[current].output = output[int(words[1]) : int(words[2])].decode(errors="replace")
    if current >= 0 and lines[current].status is None:
        lines[current].output = output[-2000:].decode(errors="replace") + f"\n(no end within {LIMIT} s for the page)"


def _attach_machine(place: DocumentShell) -> None:
    folder = place.server.folder / EXTERNAL
    place.run(f"coder templates init --id {EXTERNAL} {folder}")
    place.run(f"coder templates push {EXTERNAL} -d {folder} -y --ignore-lockfile")
    place.run(f"coder external-workspaces create hello-world --template={EXTERNAL} -y")


def check(chosen: list[Page], place: DocumentShell) -> Iterator[Line]:
    """Run pages and yield every line; those that need a machine run while one is connected. `needs last` marks pages
    that change the deployment for others."""
    plain = [page for page in chosen if "machine" not in page.needs]
    attached = [page for page in chosen if "machine" in page.needs]
    for page in plain:
        if "last" not in page.needs:
            yield from run_page(page, place)
    if attached:
        _attach_machine(place)
        with place.running(place.attach_command("hello-world"), role="machine", token=""):
            place.wait(lambda: place.is_connected("hello-world"), "the connection")
            for page in attached:
                yield from run_page(page, place)
    for page in plain:
        if "last" in page.needs:
            yield from run_page(page, place)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the commands of the documentation on a real deployment.")
    parser.add_argument("page", nargs="*", type=Path, help="Pages; all if left out.")
    parser.add_argument("--verbose", action="store_true", help="Print the output of every line.")
    options = parser.parse_args()
    wanted = {path.resolve() for path in options.page}
    chosen = [page for page in pages(ROOT) if not wanted or page.path in wanted]
    if missing := [name for name in ("bash", "curl", "terraform") if not shutil.which(name)]:
        sys.exit(f"not installed: {', '.join(missing)}")
    failed = ran = 0
    with open_document_shell("--wireguard-address", f"127.0.0.1:{free_port()}") as place:
        for line in check(chosen, place):
            ran += 1
            failed += line.failed
            name = f"{line.block.page.relative_to(ROOT)}:{line.block.line}"
            if line.failed or options.verbose:
                print(f"{name}: {line.text}\n    status {line.status}, expected {line.block.exit}")
                print("    " + line.output.strip()[-3000:].replace("\n", "\n    "), flush=True)
    skipped = collections.Counter(block.reason for page in chosen for block in page.blocks if block.reason)
    for reason, count in sorted(skipped.items()):
        print(f"not run: {count} blocks: {REASONS[reason]}")
    print(f"{ran} lines of {len(chosen)} pages were run, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
