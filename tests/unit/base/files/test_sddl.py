"""Access lists of Windows: whether another user can change what is in a folder, or replace the folder."""

from __future__ import annotations

import pytest

from coder.base.files.sddl import others_can_replace, others_can_write

USER = "S-1-5-21-1-2-3-1001"
OTHER = "S-1-5-21-1-2-3-1002"
INSTALLER = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
OWN = f"D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;{USER})"


@pytest.mark.parametrize(
    "sddl",
    [
        OWN,
        "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;OW)",
        f"{OWN}(A;;FRFX;;;WD)",
        f"{OWN}(A;;0x1200a9;;;BU)",
        f"{OWN}(A;OICIIO;FA;;;{OTHER})",
        f"{OWN}(D;;FA;;;{OTHER})",
        "D:P",
        f"O:{USER}G:S-1-5-21-1-2-3-513{OWN}",
        f"O:BAG:SY{OWN}",
        f"O:{INSTALLER}{OWN}(A;OICI;FA;;;{INSTALLER})",
        f"{OWN}(A;;CCSWWPLORC;;;WD)",
    ],
    ids=[
        "own",
        "owner rights",
        "read",
        "read by number",
        "inherit only",
        "denied",
        "empty",
        "owned",
        "owned by administrators",
        "of Windows",
        "read by abbreviations of directories",
    ],
)
def test_private_list(sddl: str) -> None:
    assert not others_can_write(sddl, USER)


@pytest.mark.parametrize(
    "sddl",
    [
        f"{OWN}(A;;FA;;;WD)",
        f"{OWN}(A;OICI;FW;;;BU)",
        f"{OWN}(A;;0x1301bf;;;AU)",
        f"{OWN}(A;CI;0x4;;;BU)",
        f"{OWN}(A;;WD;;;{OTHER})",
        f"{OWN}(A;;GA;;;{OTHER})",
        "D:NO_ACCESS_CONTROL",
        "",
        f"O:{OTHER}G:SY{OWN}",
        f"O:BUD:P(A;;FA;;;{USER})",
        f"{OWN}(A;;LC;;;AU)",
        f"{OWN}(A;;XY;;;AU)",
    ],
    ids=[
        "everyone",
        "users",
        "modify",
        "add folders",
        "change the list",
        "generic",
        "no list",
        "no lists at all",
        "other owner",
        "users own it",
        "add folders by abbreviation",
        "unknown abbreviation",
    ],
)
def test_writable_list(sddl: str) -> None:
    assert others_can_write(sddl, USER)


@pytest.mark.parametrize(
    ("user", "trustee", "is_private"),
    [
        ("S-1-5-21-1-2-3-500", "LA", True),
        ("S-1-5-19", "LS", True),
        ("S-1-5-20", "NS", True),
        ("S-1-5-18", "SY", True),
        (USER, "LS", False),
        (USER, "NS", False),
        (USER, "LG", False),
    ],
)
def test_abbreviated_accounts_are_recognized(user: str, trustee: str, is_private: bool) -> None:
    assert others_can_write(f"D:P(A;OICI;FA;;;{trustee})", user) is not is_private


DRIVE = f"O:{INSTALLER}D:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;OICIIO;SDGXGWGR;;;AU)(A;;LC;;;AU)"
DATA_DRIVE = "O:BAD:AI(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;OICI;0x1301bf;;;AU)(A;OICI;0x1200a9;;;BU)"
PROFILES = "O:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;;0x1200a9;;;BU)(A;OICIIO;GXGR;;;BU)(A;;0x1200a9;;;WD)"


@pytest.mark.parametrize(
    ("sddl", "is_root", "replaceable"),
    [
        (DRIVE, True, False),
        (PROFILES, False, False),
        (OWN, False, False),
        (f"{OWN}(A;;FW;;;WD)", False, False),
        (DATA_DRIVE, True, False),
        (DATA_DRIVE, False, True),
        (f"{OWN}(A;;DT;;;WD)", True, True),
        (f"{OWN}(A;;SD;;;{OTHER})", False, True),
        (f"{OWN}(A;;WO;;;{OTHER})", True, True),
        (f"{OWN}(A;;FA;;;WD)", False, True),
        (f"O:{OTHER}{OWN}", False, True),
        ("D:NO_ACCESS_CONTROL", False, True),
        ("", True, True),
    ],
    ids=[
        "drive of Windows",
        "profiles",
        "own",
        "files may be added",
        "second drive",
        "folder of a second drive",
        "children may be deleted",
        "may be deleted",
        "owner may change",
        "everyone",
        "other owner",
        "no list",
        "no lists at all",
    ],
)
def test_replaceable_parent(sddl: str, is_root: bool, replaceable: bool) -> None:
    """Lists of folders above; those of Windows as a new installation has them."""
    assert others_can_replace(sddl, USER, is_root=is_root) is replaceable
