"""Tries against what serves applications and terminals: the server's process `edge`, and a workspace proxy.

`answer` is what a hostile application in the workspace sends; `request` comes from a visitor. HOST is the
application's host, TOKEN the visitor's session.
"""

from __future__ import annotations

import gzip
from struct import pack

from tests.attacks.strangers.kinds import Kind, kind
from tests.attacks.strangers.tables.relay import ws

OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = b"Content-Length: 0\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: HOST\r\nCoder-Session-Token: TOKEN\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"


def _heads() -> list[Kind]:
    group = "answers of an application: status line and head"
    raw: list[tuple[str, bytes]] = [
        ("nothing", b""),
        ("one byte", b"H"),
        ("status line without an end", b"HTTP/1.1 200 OK"),
        ("head without an end", OK + b"A: b\r\n"),
        ("HTTP/0.9", b"<html>hello</html>"),
        ("HTTP/1.0 without a length", b"HTTP/1.0 200 OK\r\n\r\nhello"),
        ("HTTP/2.0", b"HTTP/2.0 200 OK\r\n" + EMPTY),
        ("HTTP/1.9", b"HTTP/1.9 200 OK\r\n" + EMPTY),
        ("HTTP/11", b"HTTP/11 200 OK\r\n" + EMPTY),
        ("lower case", b"http/1.1 200 ok\r\n" + EMPTY),
        ("frames of HTTP/2", b"\0\0\0\4\0\0\0\0\0" * 3),
        ("a TLS alert", b"\x15\x03\x01\0\2\2\x28"),
        ("SSH", b"SSH-2.0-x\r\n"),
        ("status of two digits", b"HTTP/1.1 20 OK\r\n" + EMPTY),
        ("status of four digits", b"HTTP/1.1 2000 OK\r\n" + EMPTY),
        ("status 000", b"HTTP/1.1 000 x\r\n" + EMPTY),
        ("status 099", b"HTTP/1.1 099 x\r\n" + EMPTY),
        ("status 999", b"HTTP/1.1 999 x\r\n" + EMPTY),
        ("status of letters", b"HTTP/1.1 abc x\r\n" + EMPTY),
        ("status with a sign", b"HTTP/1.1 +20 x\r\n" + EMPTY),
        ("no reason", b"HTTP/1.1 200\r\n" + EMPTY),
        ("reason of 100 KB", b"HTTP/1.1 200 " + b"a" * 100_000 + b"\r\n" + EMPTY),
        ("reason of Latin-1", b"HTTP/1.1 200 \xe9\xff\r\n" + EMPTY),
        ("reason of control characters", b"HTTP/1.1 200 \x1b[2J\x07\r\n" + EMPTY),
        ("zero byte in the reason", b"HTTP/1.1 200 a\0b\r\n" + EMPTY),
        ("an empty line first", b"\r\n" + OK + EMPTY),
        ("lines that end with LF", b"HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
        ("lines that end with CR", b"HTTP/1.1 200 OK\rContent-Length: 0\r\r"),
        ("a folded field", OK + b"A: b\r\n c\r\n" + EMPTY),
        ("a folded first field", OK + b" A: b\r\n" + EMPTY),
        ("space before the colon", OK + b"Content-Length : 0\r\n\r\n"),
        ("no colon", OK + b"Broken\r\n" + EMPTY),
        ("no name", OK + b": x\r\n" + EMPTY),
        ("name of control characters", OK + b"A\x01: x\r\n" + EMPTY),
        ("zero byte in a value", OK + b"A: a\0b\r\n" + EMPTY),
        ("CR within a value", OK + b"A: a\rSet-Cookie: x=y\r\n" + EMPTY),
        ("value of broken UTF-8", OK + b"A: \xff\xfe\r\n" + EMPTY),
        ("value of 250 KB", OK + b"A: " + b"a" * 250_000 + b"\r\n" + EMPTY),
        ("value of 300 KB", OK + b"A: " + b"a" * 300_000 + b"\r\n" + EMPTY),
        ("499 fields", OK + b"A: b\r\n" * 490 + EMPTY),
        ("10,000 fields", OK + b"A: b\r\n" * 10_000 + EMPTY),
        ("400 cookies", OK + b"".join(b"Set-Cookie: a%d=b\r\n" % n for n in range(400)) + EMPTY),
    ]
    found = [kind(group, name, data, stage="answer") for name, data in raw]
    fields: list[tuple[str, bytes]] = [
        ("our session cookie", b"Set-Cookie: coder_session_token=x; Path=/\r\n"),
        ("our session cookie for the parent domain", b"Set-Cookie: coder_session_token=x; Domain=apps.test\r\n"),
        ("our ticket's cookie", b"Set-Cookie: coder_signed_app_token=x\r\n"),
        ("cookie without a name", b"Set-Cookie: =x\r\n"),
        ("cookie of 60 KB", b"Set-Cookie: a=" + b"x" * 60_000 + b"\r\n"),
        ("redirect to a script", b"Location: javascript:alert(1)\r\n"),
        ("redirect with control characters", b"Location: /\x01\x02\r\n"),
        ("redirect to another host", b"Location: //evil.example/\r\n"),
        ("redirect of broken brackets", b"Location: http://[::1/\r\n"),
        ("redirect with a huge port", b"Location: http://localhost:99999999999/\r\n"),
        ("redirect of 60 KB", b"Location: /" + b"a" * 60_000 + b"\r\n"),
        ("two redirects", b"Location: /a\r\nLocation: /b\r\n"),
        (
            "any origin, with credentials",
            b"Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Credentials: true\r\n",
        ),
        ("clear site data", b'Clear-Site-Data: "*"\r\n'),
        ("keep-alive of nonsense", b"Keep-Alive: timeout=-1, max=x\r\n"),
        ("Connection names Content-Length", b"Connection: content-length\r\n"),
        ("Connection names 5,000 fields", b"Connection: " + b"a," * 5000 + b"b\r\n"),
        ("Upgrade without a switch", b"Upgrade: h2c\r\nConnection: Upgrade\r\n"),
        ("Trailer names Content-Length", b"Trailer: Content-Length\r\n"),
        ("our own request id", b"X-Coder-Request-Id: x\r\n"),
        ("Alt-Svc", b'Alt-Svc: h3=":443"\r\n'),
        ("Refresh", b"Refresh: 0; url=//evil.example\r\n"),
        ("Service-Worker-Allowed", b"Service-Worker-Allowed: /\r\n"),
        ("Date of nonsense", b"Date: yesterday\r\n"),
        ("content encoding of nonsense", b"Content-Encoding: gzip, gzip, br, x\r\n"),
    ]
    group = "answers of an application: fields"
    return found + [kind(group, name, OK + data + EMPTY, stage="answer") for name, data in fields]


def _bodies() -> list[Kind]:
    group = "answers of an application: length and chunks"
    chunked = OK + b"Transfer-Encoding: chunked\r\n\r\n"
    raw: list[tuple[str, bytes]] = [
        ("length longer than the body", OK + b"Content-Length: 50\r\n\r\nhello"),
        ("length shorter than the body", OK + b"Content-Length: 2\r\n\r\nhello"),
        ("negative length", OK + b"Content-Length: -5\r\n\r\nhello"),
        ("length with a plus", OK + b"Content-Length: +5\r\n\r\nhello"),
        ("length in hex", OK + b"Content-Length: 0x5\r\n\r\nhello"),
        ("length of letters", OK + b"Content-Length: five\r\n\r\nhello"),
        ("empty length", OK + b"Content-Length:\r\n\r\nhello"),
        ("length with an underscore", OK + b"Content-Length: 1_0\r\n\r\nhello"),
        ("length of other digits", OK + "Content-Length: ٥\r\n\r\nhello".encode()),
        ("length of 5,000 digits", OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\nhello"),
        ("length of 2**64", OK + b"Content-Length: 18446744073709551616\r\n\r\nhello"),
        ("two equal lengths", OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
        ("two different lengths", OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
        ("a list of lengths", OK + b"Content-Length: 5, 5\r\n\r\nhello"),
        ("a list of different lengths", OK + b"Content-Length: 5, 6\r\n\r\nhello"),
        ("length and chunks", OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        ("body of a 204", b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
        ("body of a 304", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello"),
        ("chunks of a 204", b"HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("chunks of HTTP/1.0", b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        ("gzip as transfer encoding", OK + b"Transfer-Encoding: gzip\r\n\r\n" + gzip.compress(b"x")),
        ("gzip, chunked", OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        ("chunked twice", OK + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
        ("chunked in two fields", OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("chunked, identity", OK + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        ("xchunked", OK + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        ("chunk size of letters", chunked + b"zz\r\nhello\r\n"),
        ("negative chunk size", chunked + b"-5\r\nhello\r\n"),
        ("chunk size with 0x", chunked + b"0x5\r\nhello\r\n0\r\n\r\n"),
        ("empty chunk size", chunked + b"\r\nhello\r\n"),
        ("chunk size of 2**64", chunked + b"10000000000000000\r\nhello\r\n"),
        ("chunk size of 100 digits", chunked + b"1" * 100 + b"\r\nhello\r\n"),
        ("leading zeros in a size", chunked + b"00000005\r\nhello\r\n0\r\n\r\n"),
        ("extension of 200 KB", chunked + b"5;" + b"a" * 200_000 + b"\r\nhello\r\n0\r\n\r\n"),
        ("extension with a quote", chunked + b'5;a="\r\n"\r\nhello\r\n0\r\n\r\n'),
        ("space before the end of a size", chunked + b"5 \r\nhello\r\n0\r\n\r\n"),
        ("no end of the chunk", chunked + b"5\r\nhelloXX0\r\n\r\n"),
        ("chunk end with LF", chunked + b"5\nhello\n0\n\n"),
        ("chunk cut by the end", chunked + b"ff\r\nhello"),
        ("no last chunk", chunked + b"5\r\nhello\r\n"),
        ("end within the last chunk", chunked + b"5\r\nhello\r\n0\r\n"),
        ("10,000 chunks of a byte", chunked + b"1\r\na\r\n" * 10_000 + b"0\r\n\r\n"),
        ("trailers that forge a length", chunked + b"0\r\nContent-Length: 50\r\n\r\n"),
        ("trailers that set our cookie", chunked + b"0\r\nSet-Cookie: coder_session_token=x\r\n\r\n"),
        ("10,000 trailers", chunked + b"0\r\n" + b"A: b\r\n" * 10_000 + b"\r\n"),
        ("trailer without a colon", chunked + b"0\r\nbroken\r\n\r\n"),
        ("trailer with a zero byte", chunked + b"0\r\nA: \0\r\n\r\n"),
        ("a second answer behind", OK + EMPTY + OK + b"Content-Length: 5\r\n\r\nworld"),
        ("bytes behind the answer", OK + EMPTY + bytes(1000)),
        (
            "a bomb of gzip, 10 MB in 10 KB",
            OK
            + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(gzip.compress(bytes(10 << 20)))
            + gzip.compress(bytes(10 << 20)),
        ),
        ("4 MB without a length", OK + b"Connection: close\r\n\r\n" + bytes(4 << 20)),
        (
            "a page that tries to end ours",
            OK + b"Content-Length: 27\r\nContent-Type: text/html\r\n\r\n</script><script>x</script>",
        ),
    ]
    found = [kind(group, name, data, stage="answer") for name, data in raw]
    group = "answers of an application: interim"
    interim: list[tuple[str, bytes]] = [
        ("100 without an expectation", b"HTTP/1.1 100 Continue\r\n\r\n" + OK + EMPTY),
        ("102", b"HTTP/1.1 102 Processing\r\n\r\n" + OK + EMPTY),
        ("103 with 400 links", b"HTTP/1.1 103 Early Hints\r\n" + b"Link: </a>\r\n" * 400 + b"\r\n" + OK + EMPTY),
        ("103 that sets our cookie", b"HTTP/1.1 103 x\r\nSet-Cookie: coder_session_token=x\r\n\r\n" + OK + EMPTY),
        ("103 with a length", b"HTTP/1.1 103 x\r\nContent-Length: 5\r\n\r\n" + OK + EMPTY),
        ("199", b"HTTP/1.1 199 x\r\n\r\n" + OK + EMPTY),
        ("20,000 of 102", b"HTTP/1.1 102 x\r\n\r\n" * 20_000 + OK + EMPTY),
        ("102 without an end", b"HTTP/1.1 102 x\r\n\r\n"),
        ("interim after the answer", OK + b"Content-Length: 5\r\n\r\nhelloHTTP/1.1 102 x\r\n\r\n"),
        ("101 without a request for it", SWITCH + b"\r\n" + bytes(100)),
        ("101 of HTTP/1.0", SWITCH.replace(b"1.1 101", b"1.0 101") + b"\r\n"),
    ]
    found += [kind(group, name, data, stage="answer") for name, data in interim]
    ends: list[tuple[str, bytes, str]] = [
        ("reset without a byte", b"", "reset"),
        ("reset in the head", OK[:10], "reset"),
        ("reset after the head", OK + b"Content-Length: 5\r\n\r\n", "reset"),
        ("reset in a chunk", chunked + b"ff\r\nhel", "reset"),
        ("reset after the answer", OK + EMPTY, "reset"),
        ("held after the head", OK + b"Content-Length: 5\r\n\r\n", "hold"),
        ("held without a byte", b"", "hold"),
        ("answer before the request", OK + EMPTY, "first"),
        ("closed at once", b"", "first"),
    ]
    return found + [
        kind("answers of an application: ends", name, data, stage="answer", then=then) for name, data, then in ends
    ]


def _switches() -> list[Kind]:
    group = "answers of an application: upgrades"
    raw: list[tuple[str, bytes]] = [
        ("another protocol than asked", SWITCH.replace(b"websocket", b"h2c") + b"\r\n"),
        ("no protocol", b"HTTP/1.1 101 x\r\nConnection: Upgrade\r\n\r\n"),
        ("protocol with control characters", SWITCH.replace(b"websocket", b"web\x01socket") + b"\r\n"),
        ("two protocols", SWITCH + b"Upgrade: other\r\n\r\n"),
        ("no Connection", b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\n"),
        ("wrong accept key", SWITCH + b"Sec-WebSocket-Accept: x\r\n\r\n"),
        ("our cookie", SWITCH + b"Set-Cookie: coder_session_token=x\r\n\r\n"),
        ("200 KB behind the switch", SWITCH + b"\r\n" + bytes(200_000)),
        ("broken frames behind", SWITCH + b"\r\n" + b"\xff" * 100),
        ("an HTTP answer behind", SWITCH + b"\r\n" + OK + EMPTY),
        ("refused with 200", OK + EMPTY),
        ("refused with 426", b"HTTP/1.1 426 x\r\n" + EMPTY),
        ("refused with a body without end", OK + b"\r\n" + bytes(1000)),
        ("length in a switch", SWITCH + b"Content-Length: 10\r\n\r\n"),
        ("chunks in a switch", SWITCH + b"Transfer-Encoding: chunked\r\n\r\n"),
        ("interim before the switch", b"HTTP/1.1 102 x\r\n\r\n" + SWITCH + b"\r\n"),
    ]
    found = [kind(group, name, data, stage="switch") for name, data in raw]
    frames: list[tuple[str, bytes]] = [
        ("unmasked", ws(1, b"x", mask=False)),
        ("reserved opcode", ws(5, b"x")),
        ("length of 2**63", ws(2, size=b"\x7f" + b"\xff" * 8)),
        ("close, then more", ws(8, pack("!H", 1000)) + ws(1, b"x")),
        ("plain text", b"hello"),
        ("200 KB of zeros", bytes(200_000)),
    ]
    found += [kind("frames to an application", name, data, stage="switched") for name, data in frames]
    found += [
        kind("frames to an application", f"{then} after the switch", b"", stage="switched", then=then)
        for then in ("reset", "close", "hold")
    ]
    return found


def _requests() -> list[Kind]:
    group = "requests to an application: host"
    hosts: list[tuple[str, bytes]] = [
        ("no host", b"GET / HTTP/1.1\r\n\r\n"),
        ("two hosts", GET + b"Host: other\r\n\r\n"),
        ("host of another port", GET.replace(b"HOST", b"HOST:99999") + b"\r\n"),
        ("host with a user", GET.replace(b"HOST", b"ana@HOST") + b"\r\n"),
        ("host with a trailing dot", GET.replace(b"HOST", b"HOST.") + b"\r\n"),
        ("host in capitals", GET.replace(b"HOST", b"HOST".swapcase()) + b"\r\n"),
        ("host with a zero byte", GET.replace(b"HOST", b"HOST\0") + b"\r\n"),
        ("host of 50 KB", GET.replace(b"HOST", b"a" * 50_000 + b".apps.test") + b"\r\n"),
        ("five parts", GET.replace(b"HOST", b"a--b--c--d--e.apps.test") + b"\r\n"),
        ("empty parts", GET.replace(b"HOST", b"--------.apps.test") + b"\r\n"),
        ("port 0", GET.replace(b"HOST", b"0--main--mach--ana.apps.test") + b"\r\n"),
        ("port 65536", GET.replace(b"HOST", b"65536--main--mach--ana.apps.test") + b"\r\n"),
        ("port of other digits", GET.replace(b"HOST", "٨٠--main--mach--ana.apps.test".encode()) + b"\r\n"),
        ("port of the agent's SSH", GET.replace(b"HOST", b"1--main--mach--ana.apps.test") + b"\r\n"),
        ("port of the agent's HTTP API", GET.replace(b"HOST", b"4--main--mach--ana.apps.test") + b"\r\n"),
        ("port where nothing listens", GET.replace(b"HOST", b"1111--main--mach--ana.apps.test") + b"\r\n"),
        ("port with TLS that is none", GET.replace(b"HOST", b"PORTs--main--mach--ana.apps.test") + b"\r\n"),
        ("punycode", GET.replace(b"HOST", b"xn--80ak6aa92e--main--mach--ana.apps.test") + b"\r\n"),
        ("brackets", GET.replace(b"HOST", b"[::1].apps.test") + b"\r\n"),
        ("encoded", GET.replace(b"HOST", b"%48OST") + b"\r\n"),
        ("absolute address of another host", GET.replace(b"GET /", b"GET http://other.apps.test/") + b"\r\n"),
        ("forwarded host", GET.replace(b"HOST", b"x") + b"X-Forwarded-Host: HOST\r\n\r\n"),
    ]
    found = [kind(group, name, data, stage="request") for name, data in hosts]
    group = "requests to an application: lines and bodies"
    post = GET.replace(b"GET", b"POST")
    raw: list[tuple[str, bytes]] = [
        ("CONNECT", b"CONNECT HOST:80 HTTP/1.1\r\nHost: HOST\r\n\r\n"),
        ("TRACE", GET.replace(b"GET", b"TRACE") + b"\r\n"),
        ("method of 5 KB", GET.replace(b"GET", b"A" * 5000) + b"\r\n"),
        ("method in lower case", GET.replace(b"GET", b"get") + b"\r\n"),
        ("OPTIONS *", GET.replace(b"GET /", b"OPTIONS *") + b"\r\n"),
        ("path of dots", GET.replace(b"GET /", b"GET /../../../etc/passwd") + b"\r\n"),
        ("path of encoded dots", GET.replace(b"GET /", b"GET /%2e%2e/%2e%2e/x") + b"\r\n"),
        ("path with %00", GET.replace(b"GET /", b"GET /%00") + b"\r\n"),
        ("path with broken percent", GET.replace(b"GET /", b"GET /%zz%") + b"\r\n"),
        ("path with CRLF encoded", GET.replace(b"GET /", b"GET /%0d%0aX: y") + b"\r\n"),
        ("path of raw UTF-8", GET.replace(b"GET /", "GET /é€".encode()) + b"\r\n"),
        (
            "query with our parameter",
            GET.replace(b"GET /", b"GET /?coder_application_connect_api_key_35e783=x") + b"\r\n",
        ),
        ("fragment", GET.replace(b"GET /", b"GET /#x") + b"\r\n"),
        ("internal headers", GET + b"X-Coder-Internal: 1\r\nCoder-Replica: x\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n"),
        (
            "length and chunks",
            post
            + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: HOST\r\n\r\n",
        ),
        ("chunk size with 0x", post + b"Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n"),
        ("body cut by the end", post + b"Content-Length: 50\r\n\r\nabc"),
        ("body of 1 MB the application never reads", post + b"Content-Length: 1000000\r\n\r\n" + bytes(1_000_000)),
        ("expects 100", post + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc"),
        ("expects something else", post + b"Expect: miracle\r\nContent-Length: 3\r\n\r\nabc"),
        ("100 pipelined", (GET + b"\r\n") * 100),
        ("forged ticket", GET + b"Cookie: coder_signed_app_token=eyJhbGciOiJub25lIn0.e30.\r\n\r\n"),
        ("500 cookies", GET + b"Cookie: " + b"; ".join(b"a%d=b" % n for n in range(500)) + b"\r\n\r\n"),
        ("ticket of 60 KB", GET + b"Cookie: coder_signed_app_token=" + b"a" * 60_000 + b"\r\n\r\n"),
        ("upgrade and a body", GET + UPGRADE + b"Content-Length: 3\r\n\r\nabc"),
        ("upgrade by POST", post + UPGRADE + b"\r\n"),
        ("h2c", GET + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"),
    ]
    found += [kind(group, name, data, stage="request") for name, data in raw]
    found += [
        kind("requests to an application: ends", f"{then} {when}", data, stage="request", then=then)
        for then in ("reset", "close", "hold")
        for when, data in (
            ("in the head", GET),
            ("after the head", GET + b"\r\n"),
            ("in a body", post + b"Content-Length: 50\r\n\r\nabc"),
        )
    ]
    return found


def _terminals() -> list[Kind]:
    path = b"GET /api/v2/workspaceagents/AGENT/pty?QUERY HTTP/1.1\r\nHost: x\r\nCoder-Session-Token: TOKEN\r\n"
    session = b"reconnect=00000000-0000-4000-8000-000000000001"
    queries: list[tuple[str, bytes]] = [
        ("no id", b""),
        ("id that is none", b"reconnect=x"),
        ("id with braces", b"reconnect={00000000-0000-4000-8000-000000000001}"),
        ("two ids", session + b"&" + session),
        ("height negative", session + b"&height=-1"),
        ("height of 65536", session + b"&height=65536"),
        ("height zero", session + b"&height=0&width=0"),
        ("height of other digits", session + b"&height=%D9%A1"),
        ("height of 5,000 digits", session + b"&height=" + b"9" * 5000),
        ("unknown backend", session + b"&backend_type=tmux"),
        ("command of 60 KB", session + b"&command=" + b"a" * 60_000),
        ("command with a zero byte", session + b"&command=%00"),
        ("command of broken UTF-8", session + b"&command=%ff%fe"),
        ("command that does not exist", session + b"&command=/no/such/program"),
        ("container that does not exist", session + b"&container=x&container_user=root"),
        ("container that is an option", session + b"&container=--privileged"),
        ("a forged ticket", session + b"&coder_signed_app_token=eyJhbGciOiJub25lIn0.e30."),
    ]
    found = [
        kind("terminals: query", name, path.replace(b"QUERY", data) + UPGRADE + b"\r\n", stage="request")
        for name, data in queries
    ]
    frames: list[tuple[str, bytes]] = [
        ("empty message", ws(2)),
        ("no JSON", ws(2, b"hello")),
        ("list", ws(2, b"[]")),
        ("null", ws(2, b"null")),
        ("number", ws(2, b"7")),
        ("data as number", ws(2, b'{"data":7}')),
        ("data as list", ws(2, b'{"data":["a"]}')),
        ("data as null", ws(2, b'{"data":null}')),
        ("data with lone surrogates", ws(2, b'{"data":"\\ud800"}')),
        ("data with zero bytes", ws(2, b'{"data":"\\u0000"}')),
        ("data of 60 KB", ws(2, b'{"data":"' + b"#" * 60_000 + b'"}')),
        ("height alone", ws(2, b'{"height":50}')),
        ("height as text", ws(2, b'{"height":"x","width":"y"}')),
        ("height negative", ws(2, b'{"height":-1,"width":-1}')),
        ("height of 65536", ws(2, b'{"height":65536,"width":65536}')),
        ("height of 2**70", ws(2, b'{"height":1180591620717411303424,"width":1}')),
        ("height as float", ws(2, b'{"height":1.5,"width":2.5}')),
        ("height as boolean", ws(2, b'{"height":true,"width":true}')),
        ("height NaN", ws(2, b'{"height":NaN,"width":1}')),
        ("height of 5,000 digits", ws(2, b'{"height":' + b"9" * 5000 + b"}")),
        ("2,000 sizes", b"".join(ws(2, b'{"height":%d,"width":%d}' % (n % 90 + 1, n % 70 + 1)) for n in range(2000))),
        ("depth of 20,000", ws(2, b'{"data":' + b"[" * 20_000 + b"]" * 20_000 + b"}")),
        ("20,000 fields", ws(2, b"{" + b",".join(b'"a%d":1' % n for n in range(6000)) + b"}")),
        ("fields in capitals", ws(2, b'{"DATA":"x","HEIGHT":3}')),
        ("two objects in one message", ws(2, b'{"data":"a"}{"data":"b"}')),
        ("one object in two messages", ws(2, b'{"da') + ws(2, b'ta":"a"}')),
        ("text message", ws(1, b'{"data":"a"}')),
        ("text of broken UTF-8", ws(1, b'{"data":"\xff"}')),
        ("unmasked", ws(2, b'{"data":"a"}', mask=False)),
        ("reserved opcode", ws(4, b"x")),
        ("continuation without a beginning", ws(0, b"x")),
        ("ping of 126 bytes", ws(9, bytes(126))),
        ("message of 2**63", ws(2, size=b"\x7f" + b"\xff" * 8)),
        ("endless fragments", ws(2, b"x", fin=0) + ws(0, b"x" * 1000, fin=0) * 300),
        ("interrupt, quit, suspend, end", ws(2, b'{"data":"\\u0003\\u001c\\u001a\\u0004"}')),
        ("control flow stopped", ws(2, b'{"data":"\\u0013"}')),
        ("asks for answers of the terminal", ws(2, b'{"data":"\\u001b[6n\\u001b[c\\u001b]52;c;?\\u0007"}')),
    ]
    found += [kind("terminals: messages", name, data, stage="terminal") for name, data in frames]
    loud = ws(2, b'{"data":"yes \\u001b]0;title\\u0007 | head -c 3000000\\r"}')
    states: list[tuple[str, bytes, str]] = [
        ("reset at once", b"", "reset"),
        ("close at once", b"", "close"),
        ("reset during output", loud, "reset"),
        ("close during output", loud, "close"),
        ("hold during output, never read", loud, "hold"),
        ("reset in a frame", b"\x82\xff", "reset"),
        ("close after close", ws(8, pack("!H", 1000)), "close"),
    ]
    return found + [kind("terminals: ends", name, data, stage="terminal", then=then) for name, data, then in states]


KINDS = [*_heads(), *_bodies(), *_switches(), *_requests(), *_terminals()]
