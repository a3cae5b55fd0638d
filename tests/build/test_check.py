"""How a built program is searched for what it lacks, and what its own importer gives of package data."""

from __future__ import annotations

import ast
import importlib
import marshal
import sys
from importlib import resources
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))
import check
import editions
import modules

SOURCE = """
import os.path
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from only.types import Name
else:
    import runs
def later():
    from package import module as other
    from . import beside
"""


def test_function_imports_count_type_imports_do_not() -> None:
    wanted = {"os.path", "typing:TYPE_CHECKING", "runs", "package:module"}
    assert set(check.imports(ast.parse(SOURCE))) == wanted


def test_interpreter_reports_missing_modules() -> None:
    failed = check.ask([sys.executable, "-c", check._ASK], ["json:loads", "json:no_such", "no_such_module", "os"])
    assert failed.keys() == {"json:no_such", "no_such_module"}
    assert failed["no_such_module"] == "ModuleNotFoundError: No module named 'no_such_module'"


def test_check_restores_the_program(tmp_path: Path) -> None:
    """In a slim folder, which has no second file of modules, and in a full one, whose other modules stay."""
    full = tmp_path / "_internal/modules-full.bin"
    full.parent.mkdir()
    with check.another_main(tmp_path, "first = 1"):
        assert list(modules.unpacked(full.read_bytes())) == ["coder.__main__"]
    assert not full.exists()
    before = modules.packed({"coder.__main__": (modules.MODULE, b"its own"), "other": (modules.PACKAGE, b"code")})
    full.write_bytes(before)
    with pytest.raises(SystemExit), check.another_main(tmp_path, "second = 2"):
        there = modules.unpacked(full.read_bytes())
        space: dict[str, object] = {}
        exec(marshal.loads(there.pop("coder.__main__")[1]), space)  # noqa: S102, S302 - of this test
        assert space["second"] == 2 and there == {"other": (modules.PACKAGE, b"code")}
        raise SystemExit("the check found something")
    assert full.read_bytes() == before


def missing(name: str) -> str:
    return f"ModuleNotFoundError: No module named {name!r}"


@pytest.mark.parametrize("slim", [True, False])
@pytest.mark.parametrize(
    ("wanted", "said", "meant"),
    [
        ("coder.coderd.app:run", missing("coder.coderd.app"), "slim"),
        ("coder.cli.server.server", missing("coder.coderd.config"), "slim"),
        ("sqlalchemy.orm", missing("sqlalchemy"), "slim"),
        ("encodings.big5", missing("_codecs_tw"), "both"),
        ("distutils.msvccompiler", missing("winreg"), "both"),
        ("prompt_toolkit", missing("prompt_toolkit"), "never"),
        ("coder.client.shell:run", missing("asyncssh"), "never"),
        ("requests", "FileNotFoundError: Can't open orphan path", "slim"),
    ],
)
def test_only_excluded_modules_may_be_missing(wanted: str, said: str, meant: str, *, slim: bool) -> None:
    absent = {"coder.coderd.app", "coder.coderd.config"} if slim else set()
    assert check.is_meant(wanted, said, absent, slim=slim) is (meant == "both" or (meant == "slim" and slim))


def test_package_data_is_importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As certifi's authorities, without which no trace leaves a server."""
    code = {"packed": compile("", "packed", "exec"), "packed.inner": compile("", "packed.inner", "exec")}
    kinds = {"packed": 1, "packed.inner": 0}
    monkeypatch.setitem(sys.modules, "_modules", SimpleNamespace(kind=kinds.get, code=code.get))
    monkeypatch.syspath_prepend(str(editions.ROOT / "build"))
    finder = importlib.import_module("finder")
    monkeypatch.setattr(finder, "ROOT", str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder.Finder])
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed/data.pem").write_text("authorities")
    importlib.import_module("packed.inner")
    try:
        assert (resources.files("packed") / "data.pem").read_text() == "authorities"
        with resources.as_file(resources.files("packed") / "data.pem") as path:
            assert path == tmp_path / "packed/data.pem"
        assert finder.Finder.get_resource_reader("packed.inner") is None
    finally:
        for name in ("packed", "packed.inner", "finder"):
            sys.modules.pop(name, None)
