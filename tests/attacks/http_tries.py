"""Malformed and slow HTTP in every part of a request, for the processes that accept connections."""

from __future__ import annotations

from tests.attacks.tries import Step, WireTry, wire

_END = b"\r\n\r\n"
_HOST = b"Host: {host}\r\n"
_TOKEN = b"Coder-Session-Token: {token}\r\n"
_GET = b"GET /api/v2/buildinfo HTTP/1.1\r\nHost: {host}\r\n"
_ME = b"GET /api/v2/users/me HTTP/1.1\r\nHost: {host}\r\n" + _TOKEN
_POST = b"POST /api/v2/authcheck HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n" + _TOKEN
_LOGIN = b"POST /api/v2/users/login HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
_UP = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
_KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


def _line(text: bytes) -> tuple[bytes, ...]:
    return (text + b"\r\n" + _HOST + b"\r\n",)


REQUEST_LINES: dict[str, tuple[Step, ...]] = {
    "nothing, then closed": (),
    "nothing, half closed": ("half",),
    "nothing, reset": ("reset",),
    "one byte, then reset": (b"G", "reset"),
    "one line end": (b"\r\n", "half"),
    "64 KiB of line ends": (b"\r\n" * 32768, "half"),
    "line ends before a request": (b"\r\n\r\n" + _GET + b"\r\n", "half"),
    "bare line feeds": (b"GET /healthz HTTP/1.1\nHost: x\n\n",),
    "bare carriage returns": (b"GET /healthz HTTP/1.1\rHost: x\r\r",),
    "no method": _line(b" /healthz HTTP/1.1"),
    "no target": _line(b"GET  HTTP/1.1"),
    "no version": _line(b"GET /healthz"),
    "HTTP/0.9": (b"GET /healthz\r\n",),
    "HTTP/1.0 without host": (b"GET /healthz HTTP/1.0\r\n\r\n",),
    "HTTP/1.0 keep-alive": (b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "read", _GET + b"\r\n"),
    "HTTP/1.2": _line(b"GET /healthz HTTP/1.2"),
    "HTTP/2.0 in the line": _line(b"GET /healthz HTTP/2.0"),
    "HTTP/9.9": _line(b"GET /healthz HTTP/9.9"),
    "HTTP/11": _line(b"GET /healthz HTTP/11"),
    "lower-case http": _line(b"GET /healthz http/1.1"),
    "version with letters": _line(b"GET /healthz HTTP/a.b"),
    "another protocol's name": _line(b"GET /healthz RTSP/1.0"),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(64),),
    "a TLS hello to the plain port": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),),
    "an SSH banner": (b"SSH-2.0-OpenSSH_9.6\r\n",),
    "an SMTP greeting": (b"EHLO x\r\nMAIL FROM:<a@b>\r\n",),
    "a PROXY header v1": (b"PROXY TCP4 127.0.0.2 127.0.0.1 1 2\r\n" + _GET + b"\r\n",),
    "a PROXY header v2": (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12) + _GET + b"\r\n",),
    "a Redis command": (b"*1\r\n$4\r\nINFO\r\n",),
    "a PostgreSQL start": (b"\0\0\0\x08\x04\xd2\x16\x2f",),
    "random bytes": (bytes(range(256)) * 40,),
    "zeros": (bytes(65536),),
    "lower-case method": _line(b"get /healthz HTTP/1.1"),
    "method of 8 KiB": _line(b"G" * 8192 + b" / HTTP/1.1"),
    "method with a NUL": _line(b"GE\0T / HTTP/1.1"),
    "method with a colon": _line(b"GET: / HTTP/1.1"),
    "method with UTF-8": _line("GÉT / HTTP/1.1".encode()),
    "unknown method": _line(b"BREW / HTTP/1.1"),
    "CONNECT to a port": _line(b"CONNECT 127.0.0.1:22 HTTP/1.1"),
    "CONNECT to a path": _line(b"CONNECT /derp HTTP/1.1"),
    "TRACE": (b"TRACE /api/v2/users/me HTTP/1.1\r\nHost: x\r\n" + _TOKEN + b"\r\n",),
    "OPTIONS *": _line(b"OPTIONS * HTTP/1.1"),
    "GET *": _line(b"GET * HTTP/1.1"),
    "absolute target": _line(b"GET http://{host}/healthz HTTP/1.1"),
    "absolute target of another host": _line(b"GET http://evil.test/api/v2/users/me HTTP/1.1"),
    "absolute target with a user": _line(b"GET http://a:b@{host}/healthz HTTP/1.1"),
    "absolute target of a relay": _line(b"GET http://{host}/derp HTTP/1.1"),
    "target file://": _line(b"GET file:///etc/passwd HTTP/1.1"),
    "target without a slash": _line(b"GET healthz HTTP/1.1"),
    "target //": _line(b"GET //evil.test/healthz HTTP/1.1"),
    "target of 70 KiB": _line(b"GET /" + b"a" * 70000 + b" HTTP/1.1"),
    "target of 60 KiB": _line(b"GET /" + b"a" * 60000 + b" HTTP/1.1"),
    "20,000 slashes": _line(b"GET " + b"/" * 20000 + b" HTTP/1.1"),
    "5,000 parent folders": _line(b"GET /" + b"../" * 5000 + b"etc/passwd HTTP/1.1"),
    "escaped parent folders": _line(b"GET /assets/%2e%2e%2f%2e%2e%2fetc/passwd HTTP/1.1"),
    "doubly escaped parent folders": _line(b"GET /assets/%252e%252e%252fetc/passwd HTTP/1.1"),
    "backslashes": _line(b"GET /assets\\..\\..\\etc\\passwd HTTP/1.1"),
    "half an escape": _line(b"GET /api/v2/users/% HTTP/1.1"),
    "escape without digits": _line(b"GET /api/v2/users/%zz HTTP/1.1"),
    "escaped NUL": _line(b"GET /api/v2/users/a%00b HTTP/1.1"),
    "escaped NUL in a file": _line(b"GET /assets/a%00.js HTTP/1.1"),
    "escaped line end": _line(b"GET /x%0d%0aSet-Cookie:%20a=b HTTP/1.1"),
    "escaped slash": _line(b"GET /api%2fv2%2fbuildinfo HTTP/1.1"),
    "overlong UTF-8": _line(b"GET /api/v2/users/%c0%af HTTP/1.1"),
    "unpaired surrogate in UTF-8": _line(b"GET /api/v2/users/%ed%a0%80 HTTP/1.1"),
    "invalid UTF-8": _line(b"GET /api/v2/users/%ff%fe HTTP/1.1"),
    "raw bytes above 127 in the path": _line(b"GET /api/v2/users/\xff\xfe HTTP/1.1"),
    "a control character in the path": _line(b"GET /api/v2/users/\x01 HTTP/1.1"),
    "a tab in the path": _line(b"GET /api/v2/users/\tx HTTP/1.1"),
    "a space in the path": _line(b"GET /api/v2/users/a b HTTP/1.1"),
    "a fragment": _line(b"GET /healthz#x HTTP/1.1"),
    "a query only": _line(b"GET ? HTTP/1.1"),
    "semicolon parameters": _line(b"GET /healthz;jsessionid=1 HTTP/1.1"),
    "leading spaces": _line(b"   GET /healthz HTTP/1.1"),
    "trailing spaces": _line(b"GET /healthz HTTP/1.1   "),
    "tabs between the parts": _line(b"GET\t/healthz\tHTTP/1.1"),
    "vertical tabs between the parts": _line(b"GET\x0b/healthz\x0bHTTP/1.1"),
    "the line byte by byte": tuple(b"GET /healthz HTTP/1.1\r\n"[i : i + 1] for i in range(23)),
}
HEADERS: dict[str, tuple[Step, ...]] = {
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n",),
    "two hosts": (_GET + b"Host: other\r\n\r\n",),
    "empty host": (b"GET / HTTP/1.1\r\nHost:\r\n\r\n",),
    "host with a slash": (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",),
    "host with a user": (b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",),
    "host with spaces": (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",),
    "host with a port of letters": (b"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n",),
    "host with port 99999": (b"GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n",),
    "host of 60 KiB": (b"GET / HTTP/1.1\r\nHost: " + b"a" * 60000 + b"\r\n\r\n",),
    "host of 20,000 labels": (b"GET / HTTP/1.1\r\nHost: " + b"a." * 20000 + b"\r\n\r\n",),
    "host with open bracket": (b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",),
    "host with a zone": (b"GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n",),
    "host in UTF-8": ("GET / HTTP/1.1\r\nHost: ℀.test\r\n\r\n".encode(),),
    "host in punycode": (b"GET / HTTP/1.1\r\nHost: xn--" + b"a" * 60 + b"\r\n\r\n",),
    "host of an application": (b"GET / HTTP/1.1\r\nHost: 8080--a--w--u.apps.test\r\n\r\n",),
    "a name without a value": (_GET + b"X\r\n\r\n",),
    "an empty name": (_GET + b": x\r\n\r\n",),
    "a space before the colon": (_GET + b"X : y\r\n\r\n",),
    "a name with a NUL": (_GET + b"X\0: y\r\n\r\n",),
    "a value with a NUL": (_GET + b"X: a\0b\r\n\r\n",),
    "a value with a carriage return": (_GET + b"X: a\rb\r\n\r\n",),
    "a folded line": (_GET + b"X: a\r\n b\r\n\r\n",),
    "a folded first line": (b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",),
    "1,000 folds": (_GET + b"X: a\r\n" + b" b\r\n" * 1000 + b"\r\n",),
    "a name in UTF-8": (_GET + "É: y\r\n\r\n".encode(),),
    "a value in latin-1": (_ME + b"X: \xff\xfe\r\n\r\n",),
    "a name of 60 KiB": (_GET + b"A" * 60000 + b": y\r\n\r\n",),
    "a value of 70 KiB": (_GET + b"X: " + b"a" * 70000 + b"\r\n\r\n",),
    "501 lines": (_GET + b"X: y\r\n" * 501 + b"\r\n",),
    "499 lines": (_GET + b"X: y\r\n" * 499 + b"\r\n",),
    "30,000 empty names": (_GET + b":\r\n" * 21000 + b"\r\n",),
    "unfinished head, then half closed": (_GET, "half"),
    "unfinished head, then reset": (_GET, "reset"),
    "unfinished line, then closed": (_GET + b"X-A", "close"),
    "lines one at a time": (_GET, *(b"X: y\r\n" for _ in range(20)), b"\r\n"),
    "an end of bare line feeds": (_GET + b"X: y\n\n",),
    "mixed line ends": (b"GET /healthz HTTP/1.1\nHost: x\r\nX: y\n\r\n",),
    "Connection: close, then more": (_GET + b"Connection: close" + _END + _GET + b"\r\n",),
    "Connection names Host": (_GET + b"Connection: host, close" + _END,),
    "Connection names the token": (_ME + b"Connection: Coder-Session-Token" + _END,),
    "Connection of 5,000 names": (_GET + b"Connection: " + b"a, " * 5000 + b"b" + _END,),
    "Connection twice": (_GET + b"Connection: close\r\nConnection: keep-alive" + _END,),
    "Keep-Alive without end": (_GET + b"Keep-Alive: timeout=999999999, max=999999999" + _END,),
    "TE of trailers": (_GET + b"TE: trailers, gzip;q=0.5" + _END,),
    "Max-Forwards": (_GET + b"Max-Forwards: 0" + _END,),
    "Range of bytes": (b"GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=0-" + _END,),
    "Range of 1,000 parts": (b"GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=" + b"0-1," * 1000 + b"0-1" + _END,),
    "Range backwards": (b"GET /favicon.ico HTTP/1.1\r\nHost: x\r\nRange: bytes=9-1" + _END,),
    "Range of 10^30": (b"GET /favicon.ico HTTP/1.1\r\nHost: x\r\nRange: bytes=" + b"9" * 30 + b"-" + _END,),
    "If-None-Match of 10,000 tags": (b"GET / HTTP/1.1\r\nHost: x\r\nIf-None-Match: " + b'"a", ' * 10000 + _END,),
    "If-None-Match *": (b"GET / HTTP/1.1\r\nHost: x\r\nIf-None-Match: *" + _END,),
    "If-Modified-Since of the year 99999": (
        b"GET / HTTP/1.1\r\nHost: x\r\nIf-Modified-Since: Sun, 01 Jan 99999" + _END,
    ),
    "If-Range": (b"GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\nIf-Range: garbage" + _END,),
    "Accept-Encoding with 5,000 codings": (
        b"GET / HTTP/1.1\r\nHost: x\r\nAccept-Encoding: " + b"gzip;q=0.1," * 5000 + _END,
    ),
    "Accept-Encoding with q=nan": (b"GET / HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip;q=nan, *;q=-1" + _END,),
    "Accept-Language of 50 KiB": (b"GET / HTTP/1.1\r\nHost: x\r\nAccept-Language: " + b"en-US;q=0.1," * 4000 + _END,),
    "Accept of 50 KiB": (_ME + b"Accept: " + b"a/b;q=0.1," * 5000 + _END,),
    "Content-Type without a slash": (_POST + b"Content-Type: x\r\nContent-Length: 2" + _END + b"{}",),
    "User-Agent of escapes": (_ME + b"User-Agent: \x1b[2J\x1b]0;x\x07" + _END,),
    "Referer with a password": (_ME + b"Referer: http://a:b@c/" + _END,),
    "Origin null with a cookie": (
        b"POST /api/v2/users/logout HTTP/1.1\r\nHost: x\r\nOrigin: null\r\nCookie: coder_session_token={token}" + _END,
    ),
    "X-Forwarded-For of 5,000 addresses": (_ME + b"X-Forwarded-For: " + b"1.2.3.4, " * 5000 + _END,),
    "X-Forwarded-For that is none": (_ME + b"X-Forwarded-For: ''\r\nX-Real-Ip: ::g\r\nForwarded: for=\"[\"" + _END,),
    "X-Forwarded-Host with a line end escaped": (
        _ME + b"X-Forwarded-Host: a%0d%0ab\r\nX-Forwarded-Proto: javascript" + _END,
    ),
    "traceparent of zeros": (_ME + b"traceparent: 00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-00" + _END,),
    "traceparent of garbage": (_ME + b"traceparent: zz-\xff" + _END,),
    "X-Http-Method-Override": (_ME + b"X-Http-Method-Override: DELETE\r\nX-Method-Override: PUT" + _END,),
    "a request id with escapes": (_ME + b"X-Coder-Request-Id: \x1b]0;x\r\nX-Request-Id: " + b"a" * 5000 + _END,),
    "the relay's header of a sibling": (_ME + b"Coder-Replica: 00000000-0000-0000-0000-000000000000" + _END,),
}
COOKIES: dict[str, tuple[Step, ...]] = {
    "1,000 pairs": (_GET + b"Cookie: " + b"a=b; " * 1000 + _END,),
    "10,000 equal names": (_GET + b"Cookie: " + b"coder_session_token=x;" * 2500 + _END,),
    "400 lines": (_ME + b"Cookie: a=b\r\n" * 400 + b"\r\n",),
    "no equals": (_ME + b"Cookie: coder_session_token" + _END,),
    "only semicolons": (_ME + b"Cookie: " + b";" * 30000 + _END,),
    "open quote": (_GET + b'Cookie: coder_session_token="abc' + _END,),
    "backslashes in quotes": (_GET + b'Cookie: a="' + b"\\" * 20000 + b'"' + _END,),
    "octal escapes": (_GET + b'Cookie: a="' + b"\\123" * 8000 + b'"' + _END,),
    "a comma between pairs": (_GET + b"Cookie: a=b, coder_session_token=x" + _END,),
    "$Version": (_GET + b"Cookie: $Version=1; $Path=/; coder_session_token=x" + _END,),
    "a token with a NUL": (_GET.replace(b"buildinfo", b"users/me") + b"Cookie: coder_session_token=a%00b" + _END,),
    "a token without a dash": (_GET.replace(b"buildinfo", b"users/me") + b"Cookie: coder_session_token=abc" + _END,),
    "a token of 30 KiB": (
        _GET.replace(b"buildinfo", b"users/me") + b"Cookie: coder_session_token=" + b"a" * 30000 + _END,
    ),
    "a token of dashes": (_GET.replace(b"buildinfo", b"users/me") + b"Coder-Session-Token: " + b"-" * 30000 + _END,),
    "a token in UTF-8": (_GET.replace(b"buildinfo", b"users/me") + "Coder-Session-Token: é-é".encode() + _END,),
    "a token twice": (_ME + _TOKEN + b"\r\n",),
    "a bearer of garbage": (_GET.replace(b"buildinfo", b"users/me") + b"Authorization: Bearer \xff\xff" + _END,),
    "basic of no base64": (_GET.replace(b"buildinfo", b"users/me") + b"Authorization: Basic %%%" + _END,),
    "digest": (_GET.replace(b"buildinfo", b"users/me") + b"Authorization: Digest " + b"a=b," * 5000 + _END,),
    "negotiate": (_GET.replace(b"buildinfo", b"users/me") + b"Authorization: Negotiate " + b"A" * 20000 + _END,),
    "a prefixed name": (_GET.replace(b"buildinfo", b"users/me") + b"Cookie: __Host-coder_session_token=x" + _END,),
    "path application cookie of 20 KiB": (_GET + b"Cookie: coder_path_app_session_token=" + b"a" * 20000 + _END,),
}
BODIES: dict[str, tuple[Step, ...]] = {
    "two lengths": (_POST + b"Content-Length: 2\r\nContent-Length: 3" + _END + b"{}",),
    "two equal lengths": (_POST + b"Content-Length: 2\r\nContent-Length: 2" + _END + b"{}",),
    "a list of lengths": (_POST + b"Content-Length: 2, 2" + _END + b"{}",),
    "length and chunks": (_POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked" + _END + b"0\r\n\r\n",),
    "negative length": (_POST + b"Content-Length: -1" + _END,),
    "length with a plus": (_POST + b"Content-Length: +2" + _END + b"{}",),
    "hexadecimal length": (_POST + b"Content-Length: 0x2" + _END + b"{}",),
    "length with underscores": (_POST + b"Content-Length: 1_0" + _END + b"{}",),
    "length in other digits": (_POST + "Content-Length: ٢".encode() + _END + b"{}",),
    "length with spaces inside": (_POST + b"Content-Length: 1 0" + _END,),
    "length of 10^100": (_POST + b"Content-Length: " + b"9" * 100 + _END + b"{}",),
    "length of 5,000 digits": (_POST + b"Content-Length: " + b"9" * 5000 + _END,),
    "length 2^63": (_POST + b"Content-Length: 9223372036854775808" + _END,),
    "a gigabyte announced": (_POST + b"Content-Length: 1073741824" + _END + b"{",),
    "less than announced, half closed": (_POST + b"Content-Length: 100" + _END + b"{}", "half"),
    "less than announced, reset": (_POST + b"Content-Length: 100" + _END + b"{}", "reset"),
    "more than announced": (_POST + b"Content-Length: 2" + _END + b"{}garbage",),
    "body of a GET": (_ME + b"Content-Length: 5" + _END + b"hello" + _GET + b"\r\n",),
    "a request as body of a GET": (_ME + b"Content-Length: %d" % len(_GET) + _END + _GET + b"\r\n",),
    "body of a HEAD": (b"HEAD /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5" + _END + b"hello",),
    "body of a DELETE": (
        b"DELETE /api/v2/users/me/keys/x HTTP/1.1\r\nHost: x\r\n" + _TOKEN + b"Content-Length: 3" + _END + b"[1]",
    ),
    "zero length": (_POST + b"Content-Length: 0" + _END,),
    "no length": (_POST + b"\r\n{}",),
    "HTTP/1.0 body to the end": (b"POST /api/v2/authcheck HTTP/1.0\r\n" + _TOKEN + b"\r\n{}", "half"),
    "body byte by byte": (_POST + b"Content-Length: 2" + _END, b"{", "pause", b"}"),
    "gzip body": (_POST + b"Content-Encoding: gzip\r\nContent-Length: 20" + _END + b"\x1f\x8b" + bytes(18),),
    "unknown coding": (_POST + b"Content-Encoding: x, y\r\nContent-Length: 2" + _END + b"{}",),
    "wrong type": (_POST.replace(b"application/json", b"text/plain") + b"Content-Length: 2" + _END + b"{}",),
    "charset utf-16": (
        _POST.replace(b"json", b"json; charset=utf-16") + b"Content-Length: 6" + _END + "{}".encode("utf-16"),
    ),
    "charset unknown": (_POST.replace(b"json", b"json; charset=" + b"x" * 2000) + b"Content-Length: 2" + _END + b"{}",),
    "a byte order mark": (_POST + b"Content-Length: 5" + _END + b"\xef\xbb\xbf{}",),
}
CHUNKS: dict[str, tuple[Step, ...]] = {
    name: (_POST + b"Transfer-Encoding: " + coding + _END, *rest)
    for name, coding, rest in (
        ("no chunk, half closed", b"chunked", ("half",)),
        ("no chunk, reset", b"chunked", ("reset",)),
        ("size without digits", b"chunked", (b"\r\n{}\r\n",)),
        ("size of letters", b"chunked", (b"xyz\r\n{}\r\n",)),
        ("negative size", b"chunked", (b"-1\r\n{}\r\n",)),
        ("size with a plus", b"chunked", (b"+2\r\n{}\r\n0\r\n\r\n",)),
        ("size with 0x", b"chunked", (b"0x2\r\n{}\r\n0\r\n\r\n",)),
        ("size with underscores", b"chunked", (b"0_2\r\n{}\r\n0\r\n\r\n",)),
        ("size of 20 digits", b"chunked", (b"f" * 20 + b"\r\n{}",)),
        ("size of 60 KiB of zeros", b"chunked", (b"0" * 60000 + b"2\r\n{}\r\n0\r\n\r\n",)),
        ("size without an end", b"chunked", (b"0" * 90000,)),
        ("spaces after the size", b"chunked", (b"2   \r\n{}\r\n0\r\n\r\n",)),
        ("spaces before the size", b"chunked", (b"   2\r\n{}\r\n0\r\n\r\n",)),
        ("bare line feeds", b"chunked", (b"2\n{}\n0\n\n",)),
        ("data longer than its size", b"chunked", (b"2\r\n{}{}\r\n0\r\n\r\n",)),
        ("data shorter than its size", b"chunked", (b"9\r\n{}\r\n0\r\n\r\n",)),
        ("no line end after the data", b"chunked", (b"2\r\n{}0\r\n\r\n",)),
        ("an extension", b"chunked", (b"2;a=b\r\n{}\r\n0\r\n\r\n",)),
        ("an extension of 60 KiB", b"chunked", (b"2;" + b"a" * 60000 + b"\r\n{}\r\n0\r\n\r\n",)),
        ("a quoted extension with a line end", b"chunked", (b'2;a="\r\n"\r\n{}\r\n0\r\n\r\n',)),
        ("an extension with a NUL", b"chunked", (b"2;\0\r\n{}\r\n0\r\n\r\n",)),
        ("trailers", b"chunked", (b"2\r\n{}\r\n0\r\nX: y\r\n\r\n",)),
        ("a length as trailer", b"chunked", (b"2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n",)),
        ("a token as trailer", b"chunked", (b"2\r\n{}\r\n0\r\nCoder-Session-Token: x\r\n\r\n",)),
        ("1,000 trailers", b"chunked", (b"2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 1000 + b"\r\n",)),
        ("a trailer of 70 KiB", b"chunked", (b"2\r\n{}\r\n0\r\nX: " + b"y" * 70000 + b"\r\n\r\n",)),
        ("trailers without an end, half closed", b"chunked", (b"2\r\n{}\r\n0\r\nX: y\r\n", "half")),
        ("a trailer that is no header", b"chunked", (b"2\r\n{}\r\n0\r\ngarbage\r\n\r\n",)),
        ("after the last chunk more", b"chunked", (b"0\r\n\r\n2\r\n{}\r\n0\r\n\r\n",)),
        ("reset inside a chunk", b"chunked", (b"9\r\n{", "reset")),
        ("reset between chunks", b"chunked", (b"2\r\n{}\r\n", "reset")),
        ("closed in a size", b"chunked", (b"2", "close")),
        ("chunks of one byte", b"chunked", (b"1\r\n \r\n" * 9000,)),
        ("one chunk of 2 MiB", b"chunked", (b"200000\r\n" + b" " * (2 << 20),)),
        ("chunked twice", b"chunked, chunked", (b"2\r\n{}\r\n0\r\n\r\n",)),
        ("gzip, chunked", b"gzip, chunked", (b"2\r\n{}\r\n0\r\n\r\n",)),
        ("chunked, gzip", b"chunked, gzip", (b"2\r\n{}\r\n0\r\n\r\n",)),
        ("identity", b"identity", (b"{}",)),
        ("an unknown coding", b"x", (b"{}",)),
        ("CHUNKED", b"CHUNKED", (b"2\r\n{}\r\n0\r\n\r\n",)),
        ("chunked with a vertical tab", b"\x0bchunked", (b"2\r\n{}\r\n0\r\n\r\n",)),
        ("chunked with a quote", b'"chunked"', (b"2\r\n{}\r\n0\r\n\r\n",)),
        ("no coding", b"", (b"{}",)),
    )
}
FLOWS: dict[str, tuple[Step, ...]] = {
    "expectation, body sent": (_POST + b"Expect: 100-continue\r\nContent-Length: 2" + _END, "read", b"{}"),
    "expectation, body not sent": (_POST + b"Expect: 100-continue\r\nContent-Length: 2" + _END, "read", "half"),
    "expectation, reset": (_POST + b"Expect: 100-continue\r\nContent-Length: 2" + _END, "reset"),
    "expectation without a body": (_ME + b"Expect: 100-continue" + _END,),
    "expectation with chunks": (
        _POST + b"Expect: 100-continue\r\nTransfer-Encoding: chunked" + _END,
        "read",
        b"0\r\n\r\n",
    ),
    "an unknown expectation": (_POST + b"Expect: 200-ok\r\nContent-Length: 2" + _END + b"{}",),
    "expectation in HTTP/1.0": (
        b"POST /api/v2/authcheck HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2" + _END,
    ),
    "two expectations": (_POST + b"Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 2" + _END + b"{}",),
    "upgrade to nothing": (_GET + b"Connection: Upgrade\r\nUpgrade:" + _END,),
    "upgrade to h2c": (
        _GET + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk" + _END,
    ),
    "upgrade to many": (_GET + b"Connection: Upgrade\r\nUpgrade: " + b"x, " * 5000 + b"websocket" + _END,),
    "upgrade to TLS": (_GET + b"Connection: Upgrade\r\nUpgrade: TLS/1.2" + _END,),
    "upgrade without Connection": (_GET + b"Upgrade: websocket" + _END,),
    "upgrade with a body": (_POST + _UP + _KEY + b"Content-Length: 2" + _END + b"{}",),
    "upgrade by POST": (_POST + _UP + _KEY + b"\r\n",),
    "upgrade in HTTP/1.0": (b"GET /api/v2/tailnet HTTP/1.0\r\n" + _UP + _KEY + _TOKEN + b"\r\n",),
    "upgrade with chunks": (_GET + _UP + _KEY + b"Transfer-Encoding: chunked" + _END + b"0\r\n\r\n",),
    "upgrade, frames before the answer": (
        b"GET /api/v2/tailnet?version=2.0 HTTP/1.1\r\n"
        + _HOST
        + _UP
        + _KEY
        + _TOKEN
        + b"\r\n"
        + b"\x82\x81"
        + bytes(5),
    ),
    "upgrade without a key": (b"GET /api/v2/tailnet HTTP/1.1\r\n" + _HOST + _UP + _TOKEN + b"\r\n",),
    "upgrade with a short key": (
        b"GET /api/v2/tailnet HTTP/1.1\r\n" + _HOST + _UP + b"Sec-WebSocket-Key: a\r\n" + _TOKEN + b"\r\n",
    ),
    "upgrade with a key of 50 KiB": (
        b"GET /api/v2/tailnet HTTP/1.1\r\n"
        + _HOST
        + _UP
        + b"Sec-WebSocket-Key: "
        + b"a" * 50000
        + b"\r\n"
        + _TOKEN
        + b"\r\n",
    ),
    "upgrade with two keys": (b"GET /api/v2/tailnet HTTP/1.1\r\n" + _HOST + _UP + _KEY + _KEY + _TOKEN + b"\r\n",),
    "upgrade of version 8": (
        b"GET /api/v2/tailnet HTTP/1.1\r\n" + _HOST + _UP.replace(b"13", b"8") + _KEY + _TOKEN + b"\r\n",
    ),
    "upgrade of version x": (
        b"GET /api/v2/tailnet HTTP/1.1\r\n" + _HOST + _UP.replace(b"13", b"x") + _KEY + _TOKEN + b"\r\n",
    ),
    "upgrade with 1,000 protocols": (
        b"GET /api/v2/tailnet HTTP/1.1\r\n"
        + _HOST
        + _UP
        + _KEY
        + b"Sec-WebSocket-Protocol: "
        + b"a, " * 1000
        + b"b\r\n"
        + _TOKEN
        + b"\r\n",
    ),
    "upgrade with compression": (
        b"GET /api/v2/tailnet HTTP/1.1\r\n"
        + _HOST
        + _UP
        + _KEY
        + b"Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=99\r\n"
        + _TOKEN
        + b"\r\n",
    ),
    "upgrade with an extension of 50 KiB": (
        b"GET /api/v2/tailnet HTTP/1.1\r\n"
        + _HOST
        + _UP
        + _KEY
        + b"Sec-WebSocket-Extensions: "
        + b"a;b=c," * 8000
        + b"\r\n"
        + _TOKEN
        + b"\r\n",
    ),
    "upgrade of a path without one": (_GET + _UP + _KEY + b"\r\n",),
    "upgrade of the dashboard": (b"GET / HTTP/1.1\r\n" + _HOST + _UP + _KEY + b"\r\n",),
    "two upgrades at once": ((b"GET /api/v2/tailnet HTTP/1.1\r\n" + _HOST + _UP + _KEY + _TOKEN + b"\r\n") * 2,),
    "50 pipelined requests": (_GET + b"\r\n", (_GET + b"\r\n") * 49),
    "50 pipelined, reset": ((_GET + b"\r\n") * 50, "reset"),
    "50 pipelined, half closed": ((_GET + b"\r\n") * 50, "half"),
    "pipelined behind a slow body": (_POST + b"Content-Length: 9" + _END + b"{", _GET + b"\r\n", "reset"),
    "pipelined behind a refusal": (b"garbage\r\n\r\n" + _GET + b"\r\n",),
    "pipelined behind an upgrade": (
        b"GET /api/v2/tailnet HTTP/1.1\r\n" + _HOST + _UP + _KEY + _TOKEN + b"\r\n" + _GET + b"\r\n",
    ),
    "pipelined head and half a request": (_GET + b"\r\n" + _GET[:20], "half"),
    "the answer is not read": (*((_GET + b"\r\n") * 200 for _ in range(3)), "close"),
    "a large answer, reset in it": (b"GET / HTTP/1.1\r\n" + _HOST + b"\r\n", "reset"),
    "a large answer, half closed in it": (b"GET / HTTP/1.1\r\n" + _HOST + b"\r\n", "half"),
    "half closed after a request": (_ME + b"\r\n", "half"),
    "urgent data": (_GET + b"X: ", "pause", b"y\r\n\r\n", "half"),
    "a login, reset while it hashes": (
        _LOGIN + b"Content-Length: 44" + _END + b'{"email":"ana@example.com","password":"abc"}',
        "reset",
    ),
    "a login, half closed while it hashes": (
        _LOGIN + b"Content-Length: 44" + _END + b'{"email":"ana@example.com","password":"abc"}',
        "half",
    ),
    "a login of 60 KiB password": (
        _LOGIN
        + b"Content-Length: 60042"
        + _END
        + b'{"email":"ana@example.com","password":"'
        + b"a" * 60000
        + b'"}\r\n'[:3],
    ),
    "an event stream, reset": (
        b"GET /api/v2/users/me/notifications/x HTTP/1.1\r\nAccept: text/event-stream\r\n" + _HOST + _TOKEN + b"\r\n",
        "reset",
    ),
}

TABLES = {
    "request line": REQUEST_LINES,
    "header": HEADERS,
    "cookie and token": COOKIES,
    "body": BODIES,
    "chunk": CHUNKS,
    "course of a connection": FLOWS,
}
TRIES: list[WireTry] = [
    wire("api", f"{group}: {name}", *steps) for group, table in TABLES.items() for name, steps in table.items()
]
