"""Reader of the module file in a program for Windows or macOS, as build/starter.c is on Linux.

Compiled into the program's folder as `_modules`; build/finder.py imports from it. Python's file reads replace mapped
memory, because Windows does not remove a mapped file.
"""

import _thread
import marshal
import sys

_MAGIC = b"CODERMD3"
_FIELDS = 5
"Numbers of an entry, 32 bits each: place and size of the name, place and size of the code, kind."
_index: dict[str, tuple[int, int, int]] = {}
"Name -> kind, offset and size of the code."


def _open(path):  # type: ignore[no-untyped-def]
    file = open(path, "rb")  # noqa: PTH123, SIM115 - open as long as the process; pathlib is in the file
    if file.read(8) != _MAGIC:
        raise SystemExit(f"coder: the unpacked program is damaged ({path}); remove its folder")
    count = int.from_bytes(file.read(4), "little")
    # Every target is little-endian. `struct` is one of the modules in the file.
    numbers = memoryview(file.read(count * _FIELDS * 4)).cast("I").tolist()
    first = numbers[0]
    names = file.read(numbers[-5] + numbers[-4] - first)
    for at in range(0, len(numbers), _FIELDS):
        name, name_size, code, code_size, kind = numbers[at : at + _FIELDS]
        _index[names[name - first : name - first + name_size].decode()] = (kind, code, code_size)
    return file


_place = _thread.allocate_lock()
"Held between moving the file's position and reading: imports run in several threads."
_file = _open(f"{sys.path[0]}/modules.bin")  # type: ignore[no-untyped-call]


def kind(name: str) -> int | None:
    """Return 0 for a module, 1 for a package, 2 for a namespace package; None for others."""
    entry = _index.get(name)
    return None if entry is None else entry[0]


def code(name: str):  # type: ignore[no-untyped-def]
    """Return the code object of a name; None when there is none."""
    entry = _index.get(name)
    if entry is None or not entry[2]:
        return None
    with _place:
        _file.seek(entry[1])
        data = _file.read(entry[2])
    return marshal.loads(data)  # noqa: S302 - this build's own


def function(text: str) -> None:
    """Return None: functions that `dataclasses` generates are not compiled in advance here."""
