"""Access lists of Windows as text (SDDL, "Security Descriptor Definition Language", [MS-DTYP] 2.5.1)."""

from __future__ import annotations

import re

_OWNER = re.compile(r"^O:([A-Z]{2}|S-[-0-9]+)")
_ENTRY = re.compile(r"\((\w+);(\w*);(\w*);[^;]*;[^;]*;([^;)]*)")
_INSTALLER = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
"TrustedInstaller, which owns C:\\ and the folders of Windows."
_TRUSTED = frozenset({"SY", "BA", "LA", "OW", "CO", "S-1-5-18", "S-1-5-32-544", "S-1-3-0", "S-1-3-4", _INSTALLER})
"The system, administrators (LA: the built-in one) and the owner, by abbreviation and number."
_SERVICES = {"S-1-5-19": "LS", "S-1-5-20": "NS"}
"""SIDs of service accounts that Windows abbreviates."""
_RIGHTS = {
    "CC": 0x1,
    "DC": 0x2,
    "LC": 0x4,
    "SW": 0x8,
    "RP": 0x10,
    "WP": 0x20,
    "DT": 0x40,
    "LO": 0x80,
    "CR": 0x100,
    "SD": 0x10000,
    "RC": 0x20000,
    "WD": 0x40000,
    "WO": 0x80000,
    "GA": 0x10000000,
    "GX": 0x20000000,
    "GW": 0x40000000,
    "GR": 0x80000000,
    "FA": 0x1F01FF,
    "FR": 0x120089,
    "FW": 0x120116,
    "FX": 0x1200A0,
}
"""Bits of the rights that SDDL abbreviates ([MS-DTYP] 2.4.3 and 2.5.1.1); the first nine have names of directory
services, as LC for "add a folder"."""
_UNKNOWN = 0xFFFFFFFF
_CHANGE = 0x500D0156
"""Bits that allow a change: add a file, add a folder, write attributes, delete, delete a child, change the list or the
owner, generic write and all."""
_REPLACE = 0x100C0040
"Bits that allow to replace a folder in this one: delete a child, change the list or the owner, generic all."
_DELETE = 0x10000
"The right to delete or rename the folder itself."


def others_can_write(sddl: str, user: str) -> bool:
    """Return whether a change is allowed to another user than `user` (a SID), the system and administrators.

    An absent list (a file system without lists) allows everything, and an owner can change the list.
    """
    return _others_have(_CHANGE, sddl, user)


def others_can_replace(sddl: str, user: str, *, is_root: bool) -> bool:
    """Return whether such another user can rename this folder, or the folders in it, and so replace what is below.

    Adding a file or a folder replaces nothing: every user may add folders to `C:\\`. The root of a drive has no name to
    change.
    """
    return _others_have(_REPLACE if is_root else _REPLACE | _DELETE, sddl, user)


def _others_have(bits: int, sddl: str, user: str) -> bool:
    if "D:" not in sddl or "NO_ACCESS_CONTROL" in sddl:
        return True
    own = {user, _SERVICES.get(user), *_TRUSTED}
    owner = _OWNER.match(sddl)
    if owner is not None and owner[1] not in own:
        return True
    return any(
        kind in {"A", "OA", "XA"}
        and "IO" not in re.findall("..", flags)
        and trustee not in own
        and bool(_mask(rights) & bits)
        for kind, flags, rights, trustee in _ENTRY.findall(sddl)
    )


def _mask(rights: str) -> int:
    if rights.startswith("0x"):
        return int(rights, 16)
    mask = 0
    for name in re.findall("..?", rights):
        mask |= _RIGHTS.get(name, _UNKNOWN)
    return mask
