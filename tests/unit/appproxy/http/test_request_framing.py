"""Request targets that the application could not read."""

from __future__ import annotations

import h11
import pytest

from coder.appproxy.http.request_framing import OneFraming


def _event(target: bytes, method: bytes = b"GET") -> object:
    parser = OneFraming(h11.SERVER)
    parser.receive_data(method + b" " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    return parser.next_event()


@pytest.mark.parametrize("target", [b"?", b"?a=b", b"http://[", b"http://[::1/x", b"http://%5B/"])
def test_target_without_path_is_refused(target: bytes) -> None:
    with pytest.raises(h11.RemoteProtocolError) as refused:
        _event(target)
    assert refused.value.error_status_hint == 400


@pytest.mark.parametrize(
    "target", [b"/", b"/?", b"//[", b"*", b"http://x", b"http://x/y?z", b"healthz", b"127.0.0.1:22"]
)
def test_other_targets_are_read(target: bytes) -> None:
    assert isinstance(_event(target), h11.Request)
