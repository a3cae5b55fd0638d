# mypy: disable-error-code="attr-defined,unreachable,explicit-any"
"""Access lists of files on Windows: the counterpart of modes (SDDL, "Security Descriptor Definition Language")."""

from __future__ import annotations

import ctypes
import errno
import msvcrt
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import wintypes
from pathlib import Path
from typing import Any

from coder.base.files.sddl import others_can_replace, others_can_write

_kernel32: Any = ctypes.WinDLL("kernel32", use_last_error=True)
_advapi32: Any = ctypes.WinDLL("advapi32", use_last_error=True)

_FULL = "FA"
"SDDL for all rights to a file."
_SYSTEM = "SY"
"SDDL for the system account, which runs services."
_OWNER = 0x1
"OWNER_SECURITY_INFORMATION."
_ACCESS_LIST = 4
"DACL_SECURITY_INFORMATION"
_TOKEN_QUERY, _TOKEN_USER = 8, 1
_READ, _WRITE, _APPEND = 0x80000000, 0x40000000, 0x00100004
"GENERIC_READ, GENERIC_WRITE, FILE_APPEND_DATA with SYNCHRONIZE."
_CHANGE_LIST = 0x00040000
"WRITE_DAC"
_DENIED = 5
"ERROR_ACCESS_DENIED"
_SHARE_ALL = 7
_CREATE_NEW, _CREATE_ALWAYS, _OPEN_EXISTING, _OPEN_ALWAYS, _TRUNCATE_EXISTING = 1, 2, 3, 4, 5
_NORMAL = 0x80
_INVALID = ctypes.c_void_p(-1).value


class _SecurityAttributes(ctypes.Structure):
    _fields_ = [
        ("nLength", wintypes.DWORD),
        ("lpSecurityDescriptor", ctypes.c_void_p),
        ("bInheritHandle", wintypes.BOOL),
    ]


_kernel32.CreateFileW.restype = ctypes.c_void_p
_kernel32.CreateFileW.argtypes = [
    wintypes.LPCWSTR,
    wintypes.DWORD,
    wintypes.DWORD,
    ctypes.POINTER(_SecurityAttributes),
    wintypes.DWORD,
    wintypes.DWORD,
    ctypes.c_void_p,
]
_kernel32.GetCurrentProcess.restype = ctypes.c_void_p
_kernel32.LocalFree.argtypes = [ctypes.c_void_p]
_kernel32.CloseHandle.argtypes = [ctypes.c_void_p]
_advapi32.OpenProcessToken.argtypes = [ctypes.c_void_p, wintypes.DWORD, ctypes.POINTER(ctypes.c_void_p)]
_advapi32.GetTokenInformation.argtypes = [
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_void_p,
    wintypes.DWORD,
    ctypes.POINTER(wintypes.DWORD),
]
_advapi32.ConvertSidToStringSidW.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
_advapi32.LookupAccountNameW.argtypes = [
    wintypes.LPCWSTR,
    wintypes.LPCWSTR,
    ctypes.c_void_p,
    ctypes.POINTER(wintypes.DWORD),
    wintypes.LPWSTR,
    ctypes.POINTER(wintypes.DWORD),
    ctypes.POINTER(wintypes.DWORD),
]
_advapi32.ConvertStringSecurityDescriptorToSecurityDescriptorW.argtypes = [
    wintypes.LPCWSTR,
    wintypes.DWORD,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
]
_advapi32.ConvertSecurityDescriptorToStringSecurityDescriptorW.argtypes = [
    ctypes.c_void_p,
    wintypes.DWORD,
    wintypes.DWORD,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
]
_advapi32.GetFileSecurityW.argtypes = [
    wintypes.LPCWSTR,
    wintypes.DWORD,
    ctypes.c_void_p,
    wintypes.DWORD,
    ctypes.POINTER(wintypes.DWORD),
]
_advapi32.SetFileSecurityW.argtypes = [wintypes.LPCWSTR, wintypes.DWORD, ctypes.c_void_p]
_advapi32.SetKernelObjectSecurity.argtypes = [ctypes.c_void_p, wintypes.DWORD, ctypes.c_void_p]


def open_with_access_list(path: Path, flags: int, owner: str = "") -> int:
    """Return a descriptor as `os.open` does; a new file has a list of this user, the system, and the user `owner`.

    The list is protected: nothing is inherited from the folder. An existing file that is overwritten (`os.O_TRUNC`)
    gets the list, too, where this user may change it. Raises OSError.
    """
    sids = [user_sid(), *([account_sid(owner)] if owner else [])]
    with _descriptor(private_list(sids)) as described:
        attributes = _SecurityAttributes(ctypes.sizeof(_SecurityAttributes), described, False)

        def create(extra: int) -> int | None:
            rights = _rights(flags) | extra
            return _kernel32.CreateFileW(  # type: ignore[no-any-return]
                str(path), rights, _SHARE_ALL, ctypes.byref(attributes), _disposition(flags), _NORMAL, None
            )

        overwrites = bool(flags & os.O_TRUNC)
        handle = create(_CHANGE_LIST if overwrites else 0)
        if handle == _INVALID and overwrites and ctypes.get_last_error() == _DENIED:
            handle = create(0)  # a file of another user, which keeps its list
        elif handle != _INVALID and overwrites:
            _advapi32.SetKernelObjectSecurity(handle, _ACCESS_LIST, described)  # in vain on FAT, which has no lists
    if handle == _INVALID:
        raise _failure(path)
    try:
        return int(msvcrt.open_osfhandle(handle, flags & (os.O_APPEND | os.O_RDONLY) | os.O_NOINHERIT))
    except OSError:
        _kernel32.CloseHandle(handle)
        raise


def private_list(sids: list[str]) -> str:
    """Return the SDDL of an access list: these users and the system, nothing inherited."""
    return "D:P" + "".join(f"(A;;{_FULL};;;{sid})" for sid in [*sids, _SYSTEM])


def access_list(path: Path) -> str:
    """Return the SDDL of a file's owner and access list. Raises OSError."""
    text, parts = ctypes.c_void_p(), _OWNER | _ACCESS_LIST
    convert = _advapi32.ConvertSecurityDescriptorToStringSecurityDescriptorW
    if not convert(_read_parts(path, parts), 1, parts, ctypes.byref(text), None):
        raise _failure(path)
    return _taken(text)


def copy_access_list(source: Path, target: Path) -> None:
    """Give a file the access list of another one. Raises OSError."""
    if not _advapi32.SetFileSecurityW(str(target), _ACCESS_LIST, _read_parts(source, _ACCESS_LIST)):
        raise _failure(target)


def foreign_writer(folder: Path) -> str:
    """Return why other users could replace what is in a folder, by its own list or by one above; "" if they cannot.

    Folders of programs have to be private in this sense. A file with a secret need not: its own list decides which
    users read it, in whichever folder it is. Raises OSError.
    """
    if folder.is_symlink() or folder.is_junction() or not folder.is_dir():
        return f"{folder} is not a directory"
    user = user_sid()
    if others_can_write(access_list(folder), user):
        return f"{folder} is writable by other users"
    # A user who may rename a parent folder could replace this one, by either path to it.
    for above in {*folder.absolute().parents, *folder.resolve().parents}:
        if others_can_replace(access_list(above), user, is_root=above.parent == above):
            return f"{above}, above {folder}, can be replaced by other users"
    return ""


def user_sid() -> str:
    """Return the security identifier of the user of this process. Raises OSError."""
    token, size, room = ctypes.c_void_p(), wintypes.DWORD(), ctypes.create_string_buffer(512)
    if not _advapi32.OpenProcessToken(_kernel32.GetCurrentProcess(), _TOKEN_QUERY, ctypes.byref(token)):
        raise _failure()
    try:
        if not _advapi32.GetTokenInformation(token, _TOKEN_USER, room, len(room), ctypes.byref(size)):
            raise _failure()
    finally:
        _kernel32.CloseHandle(token)
    return _sid_text(ctypes.cast(room, ctypes.POINTER(ctypes.c_void_p))[0])


def account_sid(name: str) -> str:
    """Return the security identifier of a user, "name" or "domain\\name". Raises OSError."""
    room, domain = ctypes.create_string_buffer(512), ctypes.create_unicode_buffer(512)
    size, domain_size, kind = wintypes.DWORD(len(room)), wintypes.DWORD(len(domain)), wintypes.DWORD()
    found = _advapi32.LookupAccountNameW(
        None, name, room, ctypes.byref(size), domain, ctypes.byref(domain_size), ctypes.byref(kind)
    )
    if not found:
        raise _failure()
    return _sid_text(ctypes.addressof(room))


def _sid_text(sid: int | None) -> str:
    text = ctypes.c_void_p()
    if not _advapi32.ConvertSidToStringSidW(sid, ctypes.byref(text)):
        raise _failure()
    return _taken(text)


def _taken(text: ctypes.c_void_p) -> str:
    """Return a text that the system allocated, and free it."""
    try:
        return ctypes.wstring_at(text.value or 0)
    finally:
        _kernel32.LocalFree(text)


@contextmanager
def _descriptor(sddl: str) -> Iterator[int | None]:
    described = ctypes.c_void_p()
    convert = _advapi32.ConvertStringSecurityDescriptorToSecurityDescriptorW
    if not convert(sddl, 1, ctypes.byref(described), None):
        raise _failure()
    try:
        yield described.value
    finally:
        _kernel32.LocalFree(described)


def _read_parts(path: Path, parts: int) -> ctypes.Array[ctypes.c_char]:
    size = wintypes.DWORD()
    _advapi32.GetFileSecurityW(str(path), parts, None, 0, ctypes.byref(size))
    room = ctypes.create_string_buffer(size.value)
    if not size.value or not _advapi32.GetFileSecurityW(str(path), parts, room, size, ctypes.byref(size)):
        raise _failure(path)
    return room


def _rights(flags: int) -> int:
    if flags & os.O_APPEND:
        return _APPEND | (_READ if flags & os.O_RDWR else 0)
    return _READ | _WRITE if flags & os.O_RDWR else _WRITE if flags & os.O_WRONLY else _READ


def _disposition(flags: int) -> int:
    if flags & os.O_CREAT and flags & os.O_EXCL:
        return _CREATE_NEW
    if flags & os.O_CREAT:
        return _CREATE_ALWAYS if flags & os.O_TRUNC else _OPEN_ALWAYS
    return _TRUNCATE_EXISTING if flags & os.O_TRUNC else _OPEN_EXISTING


def _failure(path: Path | None = None) -> OSError:
    """Return the error of the last call, as Python raises it for the same file."""
    code = ctypes.get_last_error()
    text = ctypes.FormatError(code).strip()
    return OSError(errno.EIO, text, str(path) if path is not None else None, code)
