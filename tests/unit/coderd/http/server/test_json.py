"""Bodies as Go's decoder reads them: what is no text is replaced, what follows the first value is not looked at."""

from __future__ import annotations

import pytest

from coder.coderd.http.server.json import _decode
from coder.coderd.services.foundation.errors import Invalid


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":"x\xffy"}', {"a": "x\ufffdy"}),
        (b'{"a":"\\ud800"}', {"a": "\ufffd"}),
        (b'{"a":["\\udc00x","\\ud83d\\ude00"]}', {"a": ["\ufffdx", "\U0001f600"]}),
        (b'{"a":1} {"a":2}', {"a": 1}),
        (b' {"a":"\xc3"} rest', {"a": "\ufffd"}),
        (b"null", None),
    ],
)
def test_what_is_read(raw: bytes, value: object) -> None:
    assert _decode(raw) == value


@pytest.mark.parametrize(
    "raw",
    [b"", b"  ", b"nonsense", b"\xff\xfe{}", b"{", b'{"a":NaN}', b'{"a":1e999}', b'{"a":Infinity} x', b"[" * 9000],
)
def test_what_is_refused(raw: bytes) -> None:
    with pytest.raises(Invalid, match="Request body must be valid JSON"):
        _decode(raw)
