"""`--verbose`: each request on stderr, and never a secret (test_masking.py covers secrets)."""

from __future__ import annotations

from coder.net.request_log import Exchange, RequestLog


def test_listener_gets_each_exchange() -> None:
    log = RequestLog()
    exchanges: list[Exchange] = []
    log.note("GET", "https://x.example/a", 200, 0.5)
    log.listener = exchanges.append
    log.note("GET", "https://user:pass@x.example/a?token=b", 0, 0.0124)
    assert [str(exchange) for exchange in exchanges] == ["GET https://***@x.example/a?token=*** no answer (12 ms)"]
    assert exchanges == [log.last]


def test_raw_address_is_private() -> None:
    """Names without an underscore hold no secrets."""
    exchange = Exchange("GET", "https://x.example/derp/streams/secret", 200, 0.1)
    public = [str(getattr(exchange, name)) for name in dir(exchange) if not name.startswith("_")]
    assert len(public) == 4 and "secret" not in "".join(public)
