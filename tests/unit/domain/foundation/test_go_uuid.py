import re
from uuid import UUID

import pytest

from coder.domain.foundation.go_uuid import read_uuid

PLAIN = "6f1d5b0a-0000-4000-8000-00000000000a"
SPELLINGS = (PLAIN, PLAIN.upper(), f"urn:uuid:{PLAIN}", "{" + PLAIN + "}", PLAIN.replace("-", ""))
REFUSED = {
    "": "invalid UUID length: 0",
    "abc": "invalid UUID length: 3",
    PLAIN[:-1]: "invalid UUID length: 35",
    "é": "invalid UUID length: 2",
    "x" * 36: "invalid UUID format",
    PLAIN.replace("-", "") + "----": "invalid UUID format",  # Python's own parser accepts it
    "{" + PLAIN[:-1] + "x}": "invalid UUID format",
    "(" + PLAIN + ")": "invalid bracketed UUID format",
    "url:uuid:" + PLAIN: 'invalid urn prefix: "url:uuid:"',
    "x" * 32: "invalid UUID format",
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_every_spelling(text: str) -> None:
    assert read_uuid(text) == UUID(PLAIN)


@pytest.mark.parametrize("text", REFUSED)
def test_invalid_uuids(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(REFUSED[text])}$"):
        read_uuid(text)
