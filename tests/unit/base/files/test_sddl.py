"""Access lists of Windows: whether another user can change what is in a folder."""

from __future__ import annotations

import pytest

from coder.base.files.sddl import others_can_write

USER = "S-1-5-21-1-2-3-1001"
OTHER = "S-1-5-21-1-2-3-1002"
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
