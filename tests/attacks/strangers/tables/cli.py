"""Tries against the command line: answers of a hostile server, and requests to its command server.

`answer` is the raw answer to every request of a command; OTHER is a second server's address, which must not get the
token. `socket` is sent to the command server by a program of the same user, with descriptors: `stdin` those that a
launcher sends, or as the stage says.
"""

from __future__ import annotations

from struct import Struct

from tests.attacks.strangers.kinds import Kind, kind
from tests.attacks.strangers.tables import edge

ESCAPES = r"\u001b]0;owned\u0007\u001b[2J\u009b31m\u202e\u0000\r"


def ok(body: str, more: str = "") -> bytes:
    data = body.encode()
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n{more}\r\n".encode()
        + data
    )


def _status(line: str, more: str = "", body: str = "") -> bytes:
    return f"HTTP/1.1 {line}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body.encode()


def _answers() -> list[Kind]:
    found = [
        kind(one.group.replace("an application", "a server"), one.name, *one.pieces, stage="answer", then=one.then)
        for one in [*edge._heads(), *edge._bodies()]
        if one.then != "hold" and "cookie" not in one.name
    ]
    redirects = [
        (f"{status} to {name}", _status(f"{status} x", f"Location: {place}\r\n"))
        for status in (301, 307)
        for name, place in (
            ("another host", "http://OTHER/api/v2/users/me"),
            ("another host with credentials", "http://a:b@OTHER/x"),
            ("another scheme", "https://OTHER/x"),
            ("a file", "file:///etc/passwd"),
            ("itself", "/api/v2/users/me"),
            ("a script", "javascript:alert(1)"),
            ("broken brackets", "http://[::1/"),
            ("port 99999", "http://127.0.0.1:99999/"),
            ("control characters", "http://OTHER/\x01"),
            ("nothing", ""),
            ("another host without a scheme", "//OTHER/x"),
        )
    ]
    found += [kind("redirects of a server", name, data, stage="answer") for name, data in redirects]
    errors: list[tuple[str, bytes]] = [
        (
            "401 with a message of escape sequences",
            _status("401 x", "", '{"message":"%s","detail":"%s"}' % (ESCAPES, ESCAPES)),
        ),
        (
            "403 with validations of escape sequences",
            _status("403 x", "", '{"message":"a","validations":[{"field":"%s","detail":"%s"}]}' % (ESCAPES, ESCAPES)),
        ),
        ("400 with a page", _status("400 x", "Content-Type: text/html\r\n", "<html>\x1b[2J</html>")),
        ("401 with a challenge", _status("401 x", 'WWW-Authenticate: Basic realm="\x1b[2J"\r\n')),
        ("407", _status("407 x", "Proxy-Authenticate: Basic\r\n")),
        ("418 of escape sequences in the reason", _status("418 \x1b[2J\x1b]0;x\x07")),
        ("426", _status("426 x", "Upgrade: h2c\r\n")),
        ("429 without a time", _status("404 x")),
        ("message of 2 MB", _status("400 x", "", '{"message":"%s"}' % ("m" * 2_000_000))),
        ("message as number", _status("400 x", "", '{"message":7}')),
        ("validations as text", _status("400 x", "", '{"message":"a","validations":"b"}')),
        ("error nested", _status("400 x", "", "[" * 50_000)),
        ("error of 5,000 digits", _status("400 x", "", '{"message":' + "9" * 5000 + "}")),
        ("error of broken UTF-8", b"HTTP/1.1 400 x\r\nContent-Length: 2\r\n\r\n\xff\xfe"),
        ("error with a lone surrogate", _status("400 x", "", '{"message":"\\ud800"}')),
    ]
    found += [kind("errors of a server", name, data, stage="answer") for name, data in errors]
    user = '{"id":"00000000-0000-4000-8000-000000000001","username":"%s","email":"%s","organization_ids":[%s],"roles":[%s]}'
    contents: list[tuple[str, bytes]] = [
        ("a name of escape sequences", ok(user % (ESCAPES, ESCAPES, "", ""))),
        ("a name of 2 MB", ok(user % ("n" * 2_000_000, "", "", ""))),
        ("a name with lone surrogates", ok(user % (r"\ud800\udfff", "", "", ""))),
        ("a name of line breaks", ok(user % (r"a\nexit 1\nb", "", "", ""))),
        ("a name of tabs and spaces", ok(user % (r"\t \u2003\u2028", "", "", ""))),
        ("a name of combining letters", ok(user % (r"a" + r"\u0301" * 5000, "", "", ""))),
        (
            "100,000 organizations",
            ok(user % ("a", "b", ",".join(['"00000000-0000-4000-8000-000000000002"'] * 50_000), "")),
        ),
        (
            "roles of escape sequences",
            ok(user % ("a", "b", "", '{"name":"%s","display_name":"%s"}' % (ESCAPES, ESCAPES))),
        ),
        ("an id that is none", ok('{"id":"../../x","username":"a"}')),
        ("keys twice", ok('{"username":"a","username":"b"}')),
        ("nested 50,000 deep", ok("[" * 50_000 + "]" * 50_000)),
        ("a number of 5,000 digits", ok('{"id":' + "9" * 5000 + "}")),
        ("NaN", ok('{"id":NaN}')),
        ("byte order mark", ok("\ufeff{}")),
        ("20 MB of spaces", ok(" " * 20_000_000 + "{}")),
        ("JSON with text behind", ok("{}x")),
        ("UTF-16", b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n" + "{}".encode("utf-16")),
        ("another content type", b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 2\r\n\r\n{}"),
        ("a version of escape sequences", ok("{}", "X-Coder-Build-Version: v9\x1b[2J.0.0\r\n")),
        ("a version of 60 KB", ok("{}", "X-Coder-Build-Version: v" + "9" * 60_000 + "\r\n")),
        ("a warning of escape sequences", ok("{}", "X-Coder-Entitlements-Warning: \x1b[2J\x1b]0;x\x07\r\n")),
        ("500 warnings", ok("{}", "X-Coder-Entitlements-Warning: w\r\n" * 400)),
        ("a list of numbers", ok("[1,2,3]")),
        ("a list of 50,000 objects", ok("[" + ",".join(["{}"] * 50_000) + "]")),
    ]
    return found + [kind("contents of a server", name, data, stage="answer") for name, data in contents]


HEADER = Struct("<8s6I2Q")
MAGIC = b"CODERCS2"
IDENTITY = b"attack"


def request(
    words: tuple[bytes, ...] = (b"coder", b"version"),
    variables: tuple[bytes, ...] = (b"HOME=/tmp", b"PATH=/usr/bin:/bin"),
    *,
    magic: bytes = MAGIC,
    identity: bytes = IDENTITY,
    numbers: tuple[int, ...] = (0, 1, 2),
    mask: int = 0o22,
    count: int | None = None,
    arguments: int | None = None,
    size: int | None = None,
    environment: int | None = None,
    ignored: int = 0,
    blocked: int = 0,
    end: bytes = b"",
) -> bytes:
    body = identity + b"\0" + b"".join(number.to_bytes(4, "little") for number in numbers)
    body += b"".join(text + b"\0" for text in (*words, *variables)) + end
    head = HEADER.pack(
        magic,
        len(body) if size is None else size,
        mask,
        len(numbers) if count is None else count,
        len(words) if arguments is None else arguments,
        len(variables) if environment is None else environment,
        0,
        ignored,
        blocked,
    )
    return head + body


def _socket() -> list[Kind]:
    big = 0xFFFFFFFF
    tries: list[tuple[str, bytes]] = [
        ("nothing", b""),
        ("one byte", b"C"),
        ("half a header", request()[:20]),
        ("header alone", request()[: HEADER.size]),
        ("text", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 4),
        ("zeros", bytes(1000)),
        ("another magic", request(magic=b"CODERCS1")),
        ("another identity", request(identity=b"other")),
        ("empty identity", request(identity=b"")),
        ("identity of 1 MB", request(identity=b"a" * 1_000_000)),
        ("identity of broken UTF-8", request(identity=b"\xff\xfe")),
        ("size 0", request(size=0)),
        ("size 4 GiB", request(size=big)),
        ("size beyond the limit", request(size=(64 << 20) + 1)),
        ("size larger than what comes", request(size=5000)),
        ("size smaller than what comes", request(size=10)),
        ("no arguments", request(())),
        ("number of arguments too large", request(arguments=9)),
        ("number of arguments 2**32-1", request(arguments=big)),
        ("number of variables too small", request(environment=0)),
        ("number of descriptors too large", request(count=60)),
        ("number of descriptors 2**32-1", request(count=big)),
        ("number of descriptors 0", request(count=0)),
        ("descriptor of the listener", request(numbers=(200, 201, 202))),
        ("descriptor 2**32-1", request(numbers=(big, 1, 2))),
        ("one descriptor three times", request(numbers=(1, 1, 1))),
        ("descriptor numbers cut short", request(numbers=(0, 1), count=3)),
        ("no standard input", request(numbers=(5, 6, 7))),
        ("mask 2**32-1", request(mask=big)),
        ("mask 2**31", request(mask=1 << 31)),
        ("every signal ignored", request(ignored=0xFFFFFFFFFFFFFFFF)),
        ("every signal blocked", request(blocked=0xFFFFFFFFFFFFFFFF)),
        ("variable without an equals sign", request(variables=(b"HOME",))),
        ("variable without a name", request(variables=(b"=x",))),
        ("variable of broken UTF-8", request(variables=(b"\xff=\xfe",))),
        ("variables of one name", request(variables=(b"A=1", b"A=2"))),
        ("20,000 variables", request(variables=tuple(b"A%d=x" % n for n in range(20_000)))),
        ("a variable of 5 MB", request(variables=(b"A=" + b"x" * 5_000_000,))),
        ("LD_PRELOAD and PYTHONPATH", request(variables=(b"LD_PRELOAD=/no", b"PYTHONPATH=/no", b"PYTHONSTARTUP=/no"))),
        ("a time zone of dots", request(variables=(b"TZ=../../../etc/passwd",))),
        ("a time zone of 60 KB", request(variables=(b"TZ=" + b"a" * 60_000,))),
        ("a locale that is none", request(variables=(b"LC_ALL=\xff", b"PYTHONIOENCODING=x"))),
        ("its own socket's name", request(variables=(b"CODER_COMMAND_SERVER_SOCKET=/tmp/x",))),
        ("an empty word", request((b"", b""))),
        ("words of broken UTF-8", request((b"coder", b"\xff\xfe"))),
        ("20,000 words", request((b"coder", *[b"x"] * 20_000))),
        ("the command server itself", request((b"coder", b"command-server"))),
        ("a command that is not served", request((b"coder", b"server"))),
        ("an unknown command", request((b"coder", b"no-such"))),
        ("bytes behind the texts", request(end=b"more\0")),
        ("bytes behind the texts without an end", request(end=b"more")),
        ("two requests", request() * 2),
        ("go before the answer", request() + b"G"),
        ("no go", request() + b"N"),
    ]
    found = [kind("requests to the command server", name, data, stage="socket") for name, data in tries]
    good = request()
    for stage, name in (
        ("no descriptors", "without descriptors"),
        ("one descriptor", "with one descriptor"),
        ("folder is a file", "with a file for its folder"),
        ("closed pipe", "with a pipe that is closed"),
        ("200 descriptors", "with 200 descriptors"),
        ("sockets", "with sockets for all"),
        ("deleted folder", "with a folder that was deleted"),
        ("own socket", "with its own connection as a descriptor"),
    ):
        found.append(kind("descriptors for the command server", name, good, stage=stage))
    for then in ("reset", "close", "hold"):
        found.append(kind("ends of a launcher", f"{then} without a byte", b"", stage="socket", then=then))
        found.append(kind("ends of a launcher", f"{then} in the header", good[:30], stage="socket", then=then))
        found.append(kind("ends of a launcher", f"{then} in the body", good[:-3], stage="socket", then=then))
        found.append(kind("ends of a launcher", f"{then} after the request", good, stage="socket", then=then))
    return found


KINDS = [*_answers(), *_socket()]
