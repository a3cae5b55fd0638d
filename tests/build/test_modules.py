"""The slim program's folder, cut out of the full one's; whose docstrings a program has."""

from __future__ import annotations

import json
import marshal
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.kit.api.api_description import document

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))
import modules


def test_interrupted_build_leaves_no_modules(tmp_path: Path) -> None:
    full, slim = tmp_path / "full", tmp_path / "slim"
    (full / "_internal/lib").mkdir(parents=True)
    for name in ("lib/a.so", "b.so", "c.so"):
        (full / "_internal" / name).write_text(name)
    modules.cut_out(full, slim, ["lib/a.so", "b.so"])
    modules.cut_out(full, slim, ["lib/a.so", "c.so"])
    assert sorted(path.name for path in slim.rglob("*") if path.is_file()) == ["a.so", "c.so"]


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("library.part", False),
        ("coder.agent.agent", False),
        ("sqlalchemy", True),
        ("coder.coderd.http.people", True),
        ("sqlalchemy_other", False),
    ],
)
def test_needed_docstrings_are_kept(name: str, read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (modules.level(name) == 1) is read
    place = tmp_path / f"{name.replace('.', '/')}.py"
    place.parent.mkdir(parents=True, exist_ok=True)
    text = '"""Whole."""\ndef asks():\n    """One."""\n    return "One.", [word for word in ("One.",)]\n'
    place.write_text(text)
    monkeypatch.setattr(modules, "HERE", tmp_path / "build")
    written = marshal.dumps(compile(text, f"{name}.py", "exec", dont_inherit=True, optimize=1))
    there: dict[str, Any] = {}
    exec(marshal.loads(modules.without_docstrings(name, written)), there)  # noqa: S102, S302 - made above
    assert there.get("__doc__") is None and there["asks"].__doc__ is None
    assert there["asks"]() == ("One.", ["One."])
    place.write_text(text + "# what was collected is another text\nmore = 1\n")
    assert modules.without_docstrings(name, written) == written
    place.unlink()
    assert modules.without_docstrings(name, written) == written


def test_product_reads_no_stripped_docstrings() -> None:
    reading = re.compile(r"\b(__doc__|getdoc|json\.schema\w*)\b")
    found = {
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for path in (ROOT / "coder").rglob("*.py")
        if reading.search(path.read_text(encoding="utf-8"))
    }
    assert found and all(modules.level(name) == 1 for name in found), found


_DESCRIBED = """
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import modules

def get_code(loader, name):
    place = loader.get_filename(name)
    return compile(loader.get_data(place), place, "exec", dont_inherit=True, optimize=modules.level(name))

SourceFileLoader.get_code = get_code
from coder.api.base import codec
from coder.coderd.app import describe_api
Path(sys.argv[1]).write_bytes(codec.encode(describe_api()))
"""


def test_program_serves_same_openapi(tmp_path: Path) -> None:
    env = {"PYTHONPATH": f"{ROOT}:{ROOT / 'build'}", "PATH": os.environ["PATH"]}
    subprocess.run([sys.executable, "-c", _DESCRIBED, tmp_path / "described"], env=env, check=True)
    assert json.loads((tmp_path / "described").read_text()) == document()


_READER = """
#define PYTHON_NUMBER "3"
#define main starter_main
#include "starter.c"
PyMODINIT_FUNC PyInit__modules(void) {
    snprintf(internal, sizeof internal, "%s", getenv("MODULES"));
    map_modules(files + 1);
    return make_module();
}
"""
_ASK = """
import _modules
print(_modules.kind("trio"), _modules.kind("other"), eval(_modules.function(TEXT)), _modules.function(TEXT + " "))
"""
_HEADER = Path(sysconfig.get_paths()["include"]) / "Python.h"


@pytest.mark.skipif(shutil.which("gcc") is None or not _HEADER.is_file(), reason="the starter is C over Python.h")
def test_starter_reads_packed_modules(tmp_path: Path) -> None:
    text = "def __create_fn__():\n def __init__(self):\n  pass\n return __init__"
    code = marshal.dumps(compile("40 + 2", "f", "eval"))
    packed = modules.packed({modules.function_name(text): (modules.FUNCTION, code), "trio": (modules.PACKAGE, b"")})
    (tmp_path / "modules.bin").write_bytes(packed)
    (tmp_path / "reader.c").write_text(_READER)
    library = tmp_path / "_modules.so"
    includes = [f"-I{ROOT / 'build'}", f"-I{_HEADER.parent}"]
    subprocess.run(
        ["gcc", "-shared", "-fPIC", *includes, "-o", library, tmp_path / "reader.c", ROOT / "build/sha256.c"],
        check=True,
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "MODULES": str(tmp_path)}
    command = [sys.executable, "-c", f"TEXT = {text!r}{_ASK}"]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    assert done.stdout.split() == [str(modules.PACKAGE), "None", "42", "None"]


def test_function_texts_are_packed_by_hash() -> None:
    """Short, and never a module's name."""
    text = "def __create_fn__():\n def __init__(self):\n  pass\n return __init__"
    name = modules.function_name(text)
    assert re.fullmatch("=[0-9a-f]{32}", name) and name != modules.function_name(text + " ")
    packed = modules.packed({name: (modules.FUNCTION, b"code"), "trio": (modules.PACKAGE, b"")})
    assert modules.unpacked(packed) == {name: (modules.FUNCTION, b"code"), "trio": (modules.PACKAGE, b"")}
