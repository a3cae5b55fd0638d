"""Inspection of native files of Windows (PE) and macOS (Mach-O) without running them.

Sources: "PE Format" of Microsoft, and the headers of macOS for load commands and fat files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

PE_MACHINES = {0x8664: "amd64", 0xAA64: "arm64", 0x014C: "386"}
MACHO_PROCESSORS = {0x01000007: "amd64", 0x0100000C: "arm64"}
_FAT, _FAT_64, _MACHO_64 = 0xCAFEBABE, 0xCAFEBABF, 0xFEEDFACF
_LOAD_DYLIB, _ID_DYLIB, _WEAK_DYLIB, _REEXPORT_DYLIB = 0xC, 0xD, 0x80000018, 0x8000001F
_RPATH, _SIGNATURE, _VERSION_MIN, _BUILD_VERSION = 0x8000001C, 0x1D, 0x24, 0x32
SYSTEM_DLLS = frozenset(
    "advapi32 bcrypt bcryptprimitives combase comctl32 crypt32 cryptbase d2d1 d3d11 d3dcompiler_47 dwrite dxgi gdi32 "
    "icu imm32 iphlpapi kernel32 msvcrt mswsock ncrypt ntdll ole32 oleaut32 pdh powrprof propsys psapi rpcrt4 secur32 "
    "shell32 shlwapi synchronization ucrtbase user32 userenv usp10 version winmm winspool wintrust ws2_32 "
    "wtsapi32".split()
)
"""Libraries of Windows 10 and later that programs import by name; `api-ms-win-…` sets belong to it, too."""
SYSTEM_FOLDERS = ("/usr/lib/", "/System/Library/")


@dataclass
class Image:
    """Facts of one native file. A fat Mach-O file has one image for each processor."""

    machine: str
    imports: list[str] = field(default_factory=list)
    "Names of libraries, as the file has them."
    exports: list[str] = field(default_factory=list)
    "PE only."
    rpaths: list[str] = field(default_factory=list)
    minimum: tuple[int, int] = (0, 0)
    "Mach-O: the oldest macOS that runs it."
    signed: bool = False
    "Mach-O: whether a signature is there."
    offset: int = 0
    size: int = 0
    "Mach-O: place of the image in the file."


def images(path: Path) -> list[Image]:
    """Return the images of a native file; empty for other files."""
    if path.is_symlink() or not path.is_file():
        return []
    with path.open("rb") as file:
        head = file.read(4)
    if head[:2] == b"MZ":
        return [pe_image(path.read_bytes())]
    if head in {struct.pack("<I", _MACHO_64), struct.pack(">I", _FAT), struct.pack(">I", _FAT_64)}:
        return list(macho_images(path.read_bytes()))
    if head == b"\x7fELF":
        return [Image("linux")]
    return []


def pe_image(data: bytes) -> Image:
    """Return the facts of a PE file. Raises ValueError for a damaged one."""
    try:
        return _pe_image(data)
    except (struct.error, IndexError) as error:
        raise ValueError(f"a damaged PE file: {error}") from error


def _pe_image(data: bytes) -> Image:
    (start,) = struct.unpack_from("<I", data, 0x3C)
    if data[start : start + 4] != b"PE\0\0":
        raise ValueError("not a PE file")
    machine, section_count, _, _, _, optional_size, _ = struct.unpack_from("<HHIIIHH", data, start + 4)
    optional = start + 24
    is_wide = struct.unpack_from("<H", data, optional)[0] == 0x20B
    directories = optional + (112 if is_wide else 96)
    sections = [
        struct.unpack_from("<8xIIII", data, optional + optional_size + 40 * index) for index in range(section_count)
    ]
    image = Image(PE_MACHINES.get(machine, f"{machine:#x}"))
    exports, imports = (struct.unpack_from("<II", data, directories + 8 * index)[0] for index in range(2))
    (delayed,) = struct.unpack_from("<I", data, directories + 8 * 13)
    for table, step, name_field in ((imports, 20, 12), (delayed, 32, 4)):
        at = _place(table, sections) if table else 0
        while at and (name := struct.unpack_from("<I", data, at + name_field)[0]):
            image.imports.append(_text(data, _place(name, sections)))
            at += step
    if exports:
        at = _place(exports, sections)
        count, _, names = struct.unpack_from("<III", data, at + 24)
        addresses = struct.unpack_from(f"<{count}I", data, _place(names, sections)) if count else ()
        image.exports = [_text(data, _place(address, sections)) for address in addresses]
    return image


def _place(address: int, sections: list[tuple[int, int, int, int]]) -> int:
    """Return the offset in the file of an address of the loaded image."""
    for size, start, raw_size, raw in sections:
        if start <= address < start + max(size, raw_size):
            return raw + address - start
    raise ValueError(f"address {address:#x} is in no section")


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode("utf-8", "replace")


def macho_images(data: bytes) -> Iterator[Image]:
    """Yield the images of a thin or fat Mach-O file. Raises ValueError for a damaged one."""
    try:
        (magic,) = struct.unpack_from(">I", data)
        if magic not in {_FAT, _FAT_64}:
            yield _macho_image(data, 0, len(data))
            return
        (count,) = struct.unpack_from(">I", data, 4)
        layout = struct.Struct(">IIQQII" if magic == _FAT_64 else ">IIIII")
        for index in range(count):
            _, _, offset, size, *_ = layout.unpack_from(data, 8 + layout.size * index)
            yield _macho_image(data, offset, size)
    except (struct.error, IndexError) as error:
        raise ValueError(f"a damaged Mach-O file: {error}") from error


def _macho_image(data: bytes, offset: int, size: int) -> Image:
    magic, processor, _, _, count, _, _, _ = struct.unpack_from("<8I", data, offset)
    if magic != _MACHO_64:
        raise ValueError("not a 64 bit Mach-O file")
    image = Image(MACHO_PROCESSORS.get(processor, f"{processor:#x}"), offset=offset, size=size)
    at = offset + 32
    for _ in range(count):
        command, length = struct.unpack_from("<II", data, at)
        if length < 8:
            raise ValueError("an empty load command")
        if command in {_LOAD_DYLIB, _WEAK_DYLIB, _REEXPORT_DYLIB, _RPATH}:
            (name,) = struct.unpack_from("<I", data, at + 8)
            (image.rpaths if command == _RPATH else image.imports).append(_text(data, at + name))
        elif command in {_VERSION_MIN, _BUILD_VERSION}:
            (version,) = struct.unpack_from("<I", data, at + (8 if command == _VERSION_MIN else 12))
            image.minimum = (version >> 16, version >> 8 & 0xFF)
        elif command == _SIGNATURE:
            image.signed = True
        at += length
    return image


def problems(folder: Path, machine: str, *, windows: bool, newest: tuple[int, int] = (99, 0)) -> list[str]:
    """Return a sentence for each native file that belongs to another machine, imports a library that is neither in the
    folder nor part of the system, requires a macOS newer than `newest`, or has no signature."""
    found = []
    files = {path: images(path) for path in sorted(folder.rglob("*"))}
    names = {path.name.lower() for path in files if path.is_file()}
    for path, parts in files.items():
        if not parts:
            continue
        name = path.relative_to(folder).as_posix()
        part = next((part for part in parts if part.machine == machine), None)
        if part is None:
            found.append(f"{name}: for {', '.join(part.machine for part in parts)}, not {machine}")
        elif windows:
            found += [f"{name}: imports {library}" for library in part.imports if not _has_dll(library, names)]
        else:
            found += [f"{name}: {problem}" for problem in _macho_problems(path, part, folder, newest)]
    return found


def _has_dll(library: str, names: set[str]) -> bool:
    lower = library.lower()
    return lower in names or lower.startswith(("api-ms-win-", "ext-ms-")) or lower.removesuffix(".dll") in SYSTEM_DLLS


def _macho_problems(path: Path, image: Image, folder: Path, newest: tuple[int, int]) -> Iterator[str]:
    for library in image.imports:
        if not library.startswith(SYSTEM_FOLDERS) and not any(_resolved(library, path, image, folder)):
            yield f"imports {library}"
    if image.minimum > newest:
        yield f"requires macOS {image.minimum[0]}.{image.minimum[1]}"
    if not image.signed and image.machine == "arm64":
        yield "has no signature, which arm64 requires"


def _resolved(library: str, path: Path, image: Image, folder: Path) -> Iterator[Path]:
    """Yield the files of the folder that dyld would load for a library."""
    for candidate in _candidates(library, path, image, folder):
        target = Path(candidate)
        if target.is_file() and target.resolve().is_relative_to(folder.resolve()):
            yield target


def _candidates(library: str, path: Path, image: Image, folder: Path) -> Iterator[str]:
    places = {"@loader_path": str(path.parent), "@executable_path": str(folder)}
    prefix = PurePosixPath(library).parts[0]
    if prefix == "@rpath":
        for rpath in image.rpaths:
            yield library.replace(prefix, rpath.replace("@loader_path", str(path.parent)), 1)
    elif prefix in places:
        yield library.replace(prefix, places[prefix], 1)
