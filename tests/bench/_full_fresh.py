"""Part `fresh`: memory of a new server and the time until it answers, by the number of its processes."""

from __future__ import annotations

import time
from pathlib import Path

from tests.bench._full import Emit, Options
from tests.bench._full_place import pss, server_processes, serving, tree
from tests.bench._workspace import program
from tests.bench.first import Place

REST = 8.0
"""Seconds after which a start has left nothing behind."""
FORMS = {"by default": ({}, 250.0), "--processes 1": ({"CODER_PROCESSES": "1"}, 150.0)}
"""Settings of a server, and the target for its memory in MiB."""


def run(options: Options, folder: Path, emit: Emit) -> None:
    """Emit all rows."""
    forms = {**FORMS, f"--processes {options.processes}": ({"CODER_PROCESSES": str(options.processes)}, 250.0)}
    for number, (name, (settings, target)) in enumerate(forms.items()):
        own = folder / str(number)
        own.mkdir(mode=0o755)
        place = Place(program(own), own)
        began = time.monotonic()
        with serving(place, settings):
            first = time.monotonic() - began
        began = time.monotonic()
        with serving(place, settings) as process:
            second = time.monotonic() - began
            time.sleep(REST)
            servers = server_processes(process.pid)
            databases = [pid for pid in tree(process.pid) if pid not in servers]
            emit(f"new server, {name}: first start until it answers", first, "s", None)
            emit(f"new server, {name}: second start until it answers", second, "s", 1)
            emit(f"new server, {name}: PSS without Postgres", pss(servers), "MiB", target)
            emit(f"new server, {name}: PSS of its Postgres", pss(databases), "MiB", None)
