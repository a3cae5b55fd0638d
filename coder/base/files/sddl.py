"""Access lists of Windows as text (SDDL, "Security Descriptor Definition Language", [MS-DTYP] 2.5.1)."""

from __future__ import annotations

import re

_OWNER = re.compile(r"^O:([A-Z]{2}|S-[-0-9]+)")
_ENTRY = re.compile(r"\((\w+);(\w*);(\w*);[^;]*;[^;]*;([^;)]*)")
_TRUSTED = frozenset({"SY", "BA", "LA", "OW", "CO", "S-1-5-18", "S-1-5-32-544", "S-1-3-0", "S-1-3-4"})
"The system, administrators (LA: the built-in one) and the owner, by abbreviation and number."
_SERVICES = {"S-1-5-19": "LS", "S-1-5-20": "NS"}
"SIDs of service accounts that Windows abbreviates."
_READ_ONLY = frozenset({"FR", "FX", "GR", "GX", "RC"})
_WRITE_MASK = 0x500D0156
"""Bits that allow a change: add a file, add a folder, write attributes, delete, delete a child, change the list or the
owner, generic write and all."""


def others_can_write(sddl: str, user: str) -> bool:
    """Return whether a change is allowed to another user than `user` (a SID), the system and administrators.

    An absent list (a file system without lists) allows everything, and an owner can change the list.
    """
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
        and _allows_change(rights)
        for kind, flags, rights, trustee in _ENTRY.findall(sddl)
    )


def _allows_change(rights: str) -> bool:
    if rights.startswith("0x"):
        return bool(int(rights, 16) & _WRITE_MASK)
    return not set(re.findall("..", rights)) <= _READ_ONLY
