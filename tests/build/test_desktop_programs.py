"""Programs for Windows and macOS: the inspection of native files, and the pins of what goes into them."""

from __future__ import annotations

import contextlib
import marshal
import re
import shutil
import struct
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))

from desktop import collect, hot_modules, native, program, sources

ARM64, AMD64 = 0x0100000C, 0x01000007


def macho(processor: int = ARM64, *, minimum: int = 11, imports: tuple[str, ...] = (), signed: bool = True) -> bytes:
    """A Mach-O file of load commands alone, which looks for libraries beside itself."""
    commands = [_with_text(0x8000001C, 12, "@loader_path")]
    commands += [_with_text(0xC, 24, name) for name in imports]
    commands.append(struct.pack("<6I", 0x32, 24, 1, minimum << 16, 0, 0))
    if signed:
        commands.append(struct.pack("<4I", 0x1D, 16, 0, 0))
    body = b"".join(commands)
    return struct.pack("<8I", 0xFEEDFACF, processor, 0, 6, len(commands), len(body), 0, 0) + body


def _with_text(command: int, start: int, text: str) -> bytes:
    size = (start + len(text) + 8) // 8 * 8
    return struct.pack("<3I", command, size, start).ljust(start, b"\0") + text.encode().ljust(size - start, b"\0")


def pe(machine: int = 0x8664, *imports: str) -> bytes:
    """A PE file with one section, which holds a table of imported libraries."""
    base, raw = 0x1000, 0x200
    names_at = base + 20 * (len(imports) + 1)
    table, names = b"", b""
    for name in imports:
        table += struct.pack("<5I", 0, 0, 0, names_at + len(names), 0)
        names += name.encode() + b"\0"
    content = table + bytes(20) + names
    directories = bytearray(16 * 8)
    struct.pack_into("<II", directories, 8, base if imports else 0, len(table))
    optional = struct.pack("<H", 0x20B).ljust(112, b"\0") + directories
    header = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
    header += b"PE\0\0" + struct.pack("<HHIIIHH", machine, 1, 0, 0, 0, len(optional), 0) + optional
    header += b".rdata\0\0" + struct.pack("<IIII", len(content), base, len(content), raw) + bytes(16)
    return header.ljust(raw, b"\0") + content


def problems(folder: Path, files: dict[str, bytes], machine: str, **options: object) -> list[str]:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return native.problems(folder, machine, windows=bool(options.pop("windows", False)), **options)  # type: ignore[arg-type]


def test_pe_imports_resolve(tmp_path: Path) -> None:
    files = {"a.pyd": pe(0x8664, "KERNEL32.dll", "python314.dll"), "sub/b.pyd": pe(0x8664, "api-ms-win-crt-heap.dll")}
    assert problems(tmp_path, files, "amd64", windows=True) == ["a.pyd: imports python314.dll"]
    assert problems(tmp_path, {"python314.dll": pe()}, "amd64", windows=True) == []


def test_foreign_machine_is_refused(tmp_path: Path) -> None:
    files = {"a.pyd": pe(0xAA64), "b.so": b"\x7fELF" + bytes(60), "c.txt": b"text"}
    assert problems(tmp_path, files, "amd64", windows=True) == [
        "a.pyd: for arm64, not amd64",
        "b.so: for linux, not amd64",
    ]


def test_macho_problems_are_named(tmp_path: Path) -> None:
    files = {
        "fine.so": macho(imports=("/usr/lib/libSystem.B.dylib", "@rpath/lib.dylib")),
        "lib.dylib": macho(),
        "new.so": macho(minimum=26),
        "brew.so": macho(imports=("/opt/homebrew/lib/libx.dylib",)),
        "intel.so": macho(AMD64),
        "unsigned.so": macho(signed=False),
        "sub/lost.so": macho(imports=("@rpath/lib.dylib",)),
    }
    assert problems(tmp_path, files, "arm64", newest=(15, 7)) == [
        "brew.so: imports /opt/homebrew/lib/libx.dylib",
        "intel.so: for amd64, not arm64",
        "new.so: requires macOS 26.0",
        "sub/lost.so: imports @rpath/lib.dylib",
        "unsigned.so: has no signature, which arm64 requires",
    ]


def test_fat_macho_has_both() -> None:
    parts = [macho(AMD64, signed=False), macho(ARM64)]
    head = struct.pack(">II", 0xCAFEBABE, 2)
    offset = len(head) + 20 * len(parts)
    for processor, part in zip((AMD64, ARM64), parts, strict=True):
        head += struct.pack(">5I", processor, 0, offset, len(part), 0)
        offset += len(part)
    images = list(native.macho_images(head + b"".join(parts)))
    assert [(image.machine, image.signed) for image in images] == [("amd64", False), ("arm64", True)]


@pytest.mark.parametrize("data", [b"MZ", b"MZ" + bytes(200), pe()[:0x60]], ids=["short", "empty", "cut"])
def test_damaged_pe_is_rejected(data: bytes) -> None:
    with pytest.raises(ValueError, match="PE"):
        native.pe_image(data)


@pytest.mark.parametrize("name", sources.TARGETS)
def test_every_requirement_is_pinned(name: str) -> None:
    target = sources.TARGETS[name]
    lines = (sources.PINS / f"{name}.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[a-z0-9.-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines), lines
    plain = {line.split("==")[0].replace(".", "-") for line in lines}
    wanted = {each.lower().replace("_", "-").replace(".", "-") for each in (*sources.REQUIREMENTS, *target.additional)}
    assert plain == wanted


def test_another_hash_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"data")
    with pytest.raises(SystemExit, match="pinned is"):
        sources.require_hash(tmp_path / "file", "0" * 64)
    with pytest.raises(SystemExit, match="is missing"):
        sources.require_hash(tmp_path / "none", "0" * 64)


@pytest.mark.skipif(shutil.which("x86_64-w64-mingw32-gcc") is None, reason="mingw is not installed")
def test_stable_abi_library_is_reproducible(tmp_path: Path) -> None:
    """By default mingw's linker takes the library's address from the path of the output."""
    made = []
    for name in ("one", "another/deeper"):
        folder = tmp_path / name / "coder"
        folder.mkdir(parents=True)
        (folder / "python.c").write_text("__declspec(dllexport) int PyNothing(void) { return 0; }\n")
        command = [
            "x86_64-w64-mingw32-gcc",
            "-shared",
            "-nostdlib",
            "-Wl,-e,PyNothing",
            "-o",
            "python314.dll",
            "python.c",
        ]
        subprocess.run(command, cwd=folder, check=True)
        program.make_stable_abi(folder)
        made.append((folder / "python3.dll").read_bytes())
    (image,) = native.images(tmp_path / "one/coder/python3.dll")
    assert made[0] == made[1] and image.exports == ["PyNothing"]


def module_file(folder: Path, monkeypatch: pytest.MonkeyPatch, modules: dict[str, str]) -> Any:
    """The reader of a file with these modules, whose sources are given."""
    codes = {name: marshal.dumps(compile(text, name, "exec")) for name, text in modules.items()}
    names, start = "".join(codes).encode(), 12 + 20 * len(codes)
    entries, place, name_place = b"", start + len(names), start
    for name, code in codes.items():
        entries += struct.pack("<5I", name_place, len(name), place, len(code), 0)
        name_place, place = name_place + len(name), place + len(code)
    content = b"CODERMD3" + struct.pack("<I", len(codes)) + entries + names + b"".join(codes.values())
    (folder / "modules.bin").write_bytes(content)
    monkeypatch.syspath_prepend(str(folder))
    reader = types.ModuleType("module_file")
    exec((ROOT / "build/desktop/module_file.py").read_text(), reader.__dict__)  # noqa: S102
    return reader


class Watched:
    """A file that a second thread uses whenever the first has set its position, unless a lock keeps it away."""

    def __init__(self, reader: Any) -> None:
        self._reader, self._file, self.seconds = reader, reader._file, 0

    def seek(self, place: int) -> None:
        self._file.seek(place)
        if not self._reader._place.locked():
            self.seconds += 1
            if self.seconds == 1:
                thread = threading.Thread(target=self._reader.code, args=("second",))
                thread.start()
                thread.join()

    def read(self, size: int) -> bytes:
        return bytes(self._file.read(size))


def test_threads_read_own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports run in several threads, and share the file's position."""
    reader = module_file(tmp_path, monkeypatch, {"first": "a = 1\n", "second": "b = 'longer'\n"})
    for lock, read in ((reader._place, "first"), (None, "")):
        watched = Watched(reader)
        if lock is None:  # the check itself: without a lock, the other thread moves the position
            reader._place = UnlockedPlace()
        reader._file, file = watched, reader._file
        with contextlib.suppress(ValueError, EOFError, TypeError):
            assert (reader.code("first").co_filename == "first") is bool(read)
        assert bool(watched.seconds) is (lock is None)
        reader._file = file
    reader._file.close()


class UnlockedPlace(contextlib.nullcontext[None]):
    def locked(self) -> bool:
        return False


def test_compiled_module_replaces_source(tmp_path: Path) -> None:
    """What its source imports is collected as before."""
    suffix = collect.NATIVE["windows"][-1]
    for name, text in {
        "sources/p/__init__.py": "",
        "sources/p/hot.py": "import p.cold",
        "sources/p/cold.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    made = tmp_path / f"made/p/hot{suffix}"
    made.parent.mkdir(parents=True)
    made.write_bytes(b"MZ")
    found = collect.Collection(
        "windows", (tmp_path / "sources",), compiled=collect.compiled_modules(tmp_path / "made", suffix)
    )
    found.follow(["p.hot"])
    assert found.native == {"p.hot": made} and set(found.sources) == {"p", "p.cold"}


def test_modules_for_one_system_stay_plain() -> None:
    """mypyc drops code behind a check of the system, which is the one that it runs on."""
    names = hot_modules.hot_modules()
    assert len(names) > 50
    assert [name for name in names if "sys.platform" in (ROOT / name).read_text()] == []
