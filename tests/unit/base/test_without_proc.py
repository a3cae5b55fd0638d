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
from coder.cli.core.edition import POSIX_MODULES
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
    "coder.agent.platform": {"posix"},
    "coder.cli.command_server": {"handover", "listener", "overlay", "worker"},
    "coder.cli.doctor": {"server_checks"},
    "coder.cli.login": {"reset_password"},
    "coder.cli.provisioning": {"builtin_daemons", "bundle", "executors", "provisioner_daemons"},
    "coder.cli.server": {
        "backup",
        "builtin_database",
        "create_admin",
        "direct_database",
        "import_original",
        "upgrade_backup",
        "server",
        "server_database",
        "workspace_proxy_server",
    },
}
"""Modules of server, provisioner and command server: on Windows their commands say that they require a POSIX system."""
IMPORT = """
import importlib, os, pkgutil, sys
import asyncio, asyncssh, concurrent.futures, ctypes, ctypes.util, cryptography, getpass, google.protobuf, h11
import http.server, logging.handlers, msgspec, multiprocessing, platform, psutil, pty, selectors, shutil, signal
import socket, ssl, subprocess, sqlalchemy, tarfile, tempfile, threading, trio, trio.testing, trio_asyncio
import urllib.request, uuid, webbrowser, wsproto, yaml, zipfile, zoneinfo
from unittest.mock import MagicMock
import coder
sys.platform = sys.argv[1]
for name in sys.argv[2].split(","):
    sys.modules[name] = None
if sys.platform == "win32":
    # What Python has only on Windows.
    for name in ("_winapi", "msvcrt", "winpty", "winreg"):
        sys.modules[name] = MagicMock()
    ctypes.WinDLL, os.O_BINARY = MagicMock(), 0x8000
    subprocess.CREATE_NEW_PROCESS_GROUP, subprocess.CREATE_NO_WINDOW = 0x200, 0x8000000
for room in ("base", "domain", "api", "rpc", "mesh", "net", "tailnet", "client", "cli", "agent"):
    found = importlib.import_module(f"coder.{room}")
    for module in pkgutil.walk_packages(found.__path__, found.__name__ + "."):
        if sys.platform != "win32" and module.name.endswith((".windows", ".windows_access", ".windows_console")):
            continue
        try:
            importlib.import_module(module.name)
        except Exception as error:
            print(module.name, type(error).__name__, error, getattr(error, "name", ""), sep="|")
"""
LACKING = {"win32": ("fcntl", "pwd", "grp", "termios", "tty", "pty", "resource"), "darwin": ("systemd",)}


@pytest.mark.parametrize("system", SYSTEMS)
def test_commands_import(system: str) -> None:
    """Import every module of command line and client, without Python features that are missing there."""
    command = [sys.executable, "-c", IMPORT, system, ",".join(LACKING[system])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    failed = {line.split("|")[0]: line.split("|")[-1] for line in done.stdout.splitlines()}
    packages = ONLY_POSIX if system == "win32" else {}
    assert set(failed) == {f"{package}.{name}" for package, names in packages.items() for name in names}, done.stdout
    assert set(failed.values()) <= POSIX_MODULES, "edition.py explains these"
