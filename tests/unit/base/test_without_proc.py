"""Machines without /proc: the psutil branch returns the values of /proc, or None."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from coder.agent.network.ports import listening_ports
from coder.base import host, without_proc
from coder.cli.core.session import default_config_dir

pytest.importorskip("psutil")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="compares with /proc")
SYSTEMS = ("darwin", "win32")


@linux
@pytest.mark.parametrize("system", SYSTEMS)
def test_psutil_matches_proc(system: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        by_proc = {found.port: found for found in listening_ports()}
        total = host._memory()[1]
        ticks = host._cpu_ticks()
        monkeypatch.setattr(sys, "platform", system)
        by_psutil = {found.port: found for found in listening_ports()}
        assert by_psutil[port].process_name and by_psutil[port].network == by_proc[port].network
        # Other tests open and close ports meanwhile: only our own is compared.
        assert port not in {found.port for found in listening_ports(frozenset({port}))}
    assert host._memory()[1] == total
    later = host._cpu_ticks()
    assert ticks is not None and later is not None and later[1] >= ticks[1] > 0
    seen = host.HostWatch(tmp_path).look()
    assert seen.cores == os.cpu_count() and seen.disk_total and seen.disk_used is not None


@pytest.mark.parametrize("system", SYSTEMS)
def test_missing_psutil_returns_none(system: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setitem(sys.modules, "psutil", None)
    monkeypatch.delattr(os, "getloadavg")
    seen = host.HostWatch(tmp_path).look()
    assert (seen.cpu, seen.load, seen.memory_used, seen.memory_total) == (None, None, None, None)
    assert listening_ports() == [] and without_proc.listening_programs() == {}


def test_settings_locations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path / "Roaming"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    places = {"linux": ".config/coderv2", "darwin": "Library/Application Support/coderv2", "win32": "Roaming/coderv2"}
    for system, place in places.items():
        monkeypatch.setattr(sys, "platform", system)
        assert default_config_dir() == tmp_path / place


ONLY_POSIX = {
    "coder.cli.command_server": "the command server hands over file descriptors",
    "coder.agent": "a workspace's agent needs a POSIX shell and terminals; on Windows use WSL",
}
IMPORT = """
import importlib, os, pkgutil, sys
import asyncio, asyncssh, concurrent.futures, ctypes.util, cryptography, getpass, google.protobuf, h11, http.server
import logging.handlers, msgspec, multiprocessing, platform, pty, selectors, shutil, signal, socket, ssl, subprocess
import sqlalchemy, tarfile, tempfile, threading, trio, trio.testing, trio_asyncio, urllib.request, uuid, webbrowser
import wsproto, yaml, zipfile, zoneinfo
import coder
sys.platform = sys.argv[1]
for name in sys.argv[2].split(","):
    sys.modules[name] = None
for room in ("base", "domain", "api", "rpc", "mesh", "net", "tailnet", "client", "cli", "agent"):
    found = importlib.import_module(f"coder.{room}")
    for module in pkgutil.walk_packages(found.__path__, found.__name__ + "."):
        try:
            importlib.import_module(module.name)
        except Exception as error:
            print(module.name, type(error).__name__, error, sep="|")
"""
LACKING = {"win32": ("fcntl", "pwd", "grp", "termios", "tty", "pty", "resource"), "darwin": ("systemd",)}


@pytest.mark.parametrize("system", SYSTEMS)
def test_commands_import(system: str) -> None:
    """Import every module of command line and client, without Python features that are missing there."""
    command = [sys.executable, "-c", IMPORT, system, ",".join(LACKING[system])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    failed = {line.split("|")[0]: line for line in done.stdout.splitlines()}
    rooms = ONLY_POSIX if system == "win32" else {}
    assert not [line for name, line in failed.items() if not any(name.startswith(room) for room in rooms)]
    assert all(any(name.startswith(room) for name in failed) for room in rooms), "an outdated exception"
