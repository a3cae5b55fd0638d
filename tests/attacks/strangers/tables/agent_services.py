"""Tries against an agent's other services on the overlay: SFTP, HTTP, terminals, speed tests.

The stage `sftp` sends the bodies of SFTP packets, the others send bytes to the service's port.
"""

from __future__ import annotations

from struct import pack

from tests.attacks.strangers.kinds import Kind, kind
from tests.attacks.strangers.tables.agent import number, text


def _sftp() -> list[Kind]:
    init = b"\1" + number(3)

    def op(type_: int, body: bytes = b"", ident: int = 7) -> bytes:
        return bytes([type_]) + number(ident) + body

    path = text(b"/tmp/coder-attack")
    tries: list[tuple[str, tuple[bytes, ...]]] = [
        ("no init", (op(17, text(b"/")),)),
        ("init of version 0", (b"\1" + number(0),)),
        ("init of version 2**32-1", (b"\1" + number(0xFFFFFFFF),)),
        ("init cut short", (b"\1",)),
        ("init twice", (init, init)),
        ("unknown operation", (init, op(199))),
        ("operation without an id", (init, b"\x11")),
        ("open without a path", (init, op(3))),
        ("open of a zero byte", (init, op(3, text(b"/tmp/\0") + number(1) + number(0)))),
        ("open of broken UTF-8", (init, op(3, text(b"/tmp/\xff") + number(1) + number(0)))),
        ("open of a folder", (init, op(3, text(b"/tmp") + number(1) + number(0)))),
        ("open of a device", (init, op(3, text(b"/dev/full") + number(2) + number(0)))),
        ("open with no flags", (init, op(3, path + number(0) + number(0)))),
        ("open with every flag", (init, op(3, text(b"/no/such") + number(0xFFFFFFFF) + number(0)))),
        ("attributes cut short", (init, op(9, path + number(0xFFFFFFFF)))),
        ("attributes of 2**32-1 extensions", (init, op(9, path + number(0x80000000) + number(0xFFFFFFFF)))),
        ("close of a handle that is none", (init, op(4, text(b"x")))),
        ("read of a handle that is none", (init, op(5, text(b"\xff" * 300) + bytes(8) + number(9)))),
        (
            "read of 4 GiB",
            (
                init,
                op(3, text(b"/dev/zero") + number(1) + number(0)),
                op(5, text(b"\0\0\0\0") + bytes(8) + number(0xFFFFFFFF)),
            ),
        ),
        (
            "read at 2**63",
            (
                init,
                op(3, text(b"/dev/zero") + number(1) + number(0)),
                op(5, text(b"\0\0\0\0") + b"\xff" * 8 + number(9)),
            ),
        ),
        ("write of a handle that is none", (init, op(6, text(b"x") + bytes(8) + text(b"x")))),
        ("path of 100 KB", (init, op(17, text(b"/" + b"a" * 100_000)))),
        ("path of 10,000 dots", (init, op(16, text(b"../" * 10_000)))),
        ("empty path", (init, op(17, text(b"")))),
        ("link to itself", (init, op(20, text(b"/tmp/coder-attack-link") + text(b"/tmp/coder-attack-link")))),
        ("rename of nothing", (init, op(18, text(b"") + text(b"")))),
        ("removal of the root", (init, op(15, text(b"/")))),
        ("folder of a file", (init, op(11, text(b"/etc/passwd")))),
        ("unknown extension", (init, op(200, text(b"x@y")))),
        ("extension without a name", (init, op(200))),
        ("statvfs cut short", (init, op(200, text(b"statvfs@openssh.com")))),
        (
            "copy of handles that are none",
            (init, op(200, text(b"copy-data") + text(b"a") + bytes(16) + text(b"b") + bytes(8))),
        ),
        ("limits", (init, op(200, text(b"limits@openssh.com")))),
        ("5,000 operations at once", (init, *[op(17, text(b"/"), n) for n in range(5000)])),
        ("2,000 handles", (init, *[op(3, text(b"/dev/null") + number(1) + number(0), n) for n in range(2000)])),
        ("packet of 4 GiB", (init, b"SIZE" + number(0xFFFFFFFF))),
        ("packet of length 0", (init, b"SIZE" + number(0))),
    ]
    return [Kind("SFTP", name, data, "sftp") for name, data in tries]


def _http() -> list[Kind]:
    def get(path: bytes, more: bytes = b"") -> bytes:
        return b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + more + b"\r\n"

    def post(path: bytes, body: bytes) -> bytes:
        return b"POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (
            path,
            len(body),
            body,
        )

    tries: list[tuple[str, bytes]] = [
        ("unknown path", get(b"/x")),
        ("path of dots", get(b"/../../etc/passwd")),
        ("broken brackets", get(b"//[::1/x")),
        ("file that is a device", get(b"/api/v0/read-file?path=/dev/zero")),
        ("file that is a pipe of the kernel", get(b"/api/v0/read-file?path=/proc/kmsg")),
        ("file that is a folder", get(b"/api/v0/read-file?path=/tmp")),
        ("file of a zero byte", get(b"/api/v0/read-file?path=/%00")),
        ("file of broken UTF-8", get(b"/api/v0/read-file?path=/%ff")),
        ("file of 60 KB", get(b"/api/v0/read-file?path=/" + b"a" * 50_000)),
        ("negative offset", get(b"/api/v0/read-file?path=/etc/passwd&offset=-5")),
        ("limit of 5,000 digits", get(b"/api/v0/read-file?path=/etc/passwd&limit=" + b"9" * 5000)),
        ("offset NaN", get(b"/api/v0/read-file?path=/etc/passwd&offset=nan")),
        ("lines of a device", get(b"/api/v0/read-file-lines?path=/dev/zero")),
        ("lines with a huge limit", get(b"/api/v0/read-file-lines?path=/etc/passwd&limit=" + b"9" * 30)),
        ("edits that are no JSON", post(b"/api/v0/edit-files", b"x")),
        ("edits that are a number", post(b"/api/v0/edit-files", b"7")),
        ("edits nested", post(b"/api/v0/edit-files", b"[" * 50_000)),
        ("edits of 5,000 digits", post(b"/api/v0/edit-files", b'{"files":' + b"9" * 5000 + b"}")),
        ("edits with numbers", post(b"/api/v0/edit-files", b'{"files":[{"path":7,"edits":[7]}]}')),
        (
            "edits without a search",
            post(b"/api/v0/edit-files", b'{"files":[{"path":"/etc/hostname","edits":[{"search":"","replace":"x"}]}]}'),
        ),
        (
            "edits of a device",
            post(b"/api/v0/edit-files", b'{"files":[{"path":"/dev/null","edits":[{"search":"a","replace":"b"}]}]}'),
        ),
        (
            "edits with a lone surrogate",
            post(b"/api/v0/edit-files", b'{"files":[{"path":"/tmp/\\ud800","edits":[{"search":"a","replace":"b"}]}]}'),
        ),
        ("list that is no JSON", post(b"/api/v0/list-directory", b"x")),
        ("list of numbers", post(b"/api/v0/list-directory", b'{"path":[1,2],"relativity":"root"}')),
        ("list of an unknown relativity", post(b"/api/v0/list-directory", b'{"path":[],"relativity":"x"}')),
        ("list with a lone surrogate", post(b"/api/v0/list-directory", b'{"path":["\\ud800"],"relativity":"root"}')),
        ("list with a zero byte", post(b"/api/v0/list-directory", b'{"path":["\\u0000"],"relativity":"root"}')),
        ("bundle of numbers", post(b"/api/v0/bundle-files", b'{"paths":[7]}')),
        ("bundle of a device", post(b"/api/v0/bundle-files", b'{"paths":["/dev/zero"]}')),
        ("bundle with a lone surrogate", post(b"/api/v0/bundle-files", b'{"paths":["/\\ud800"]}')),
        ("bundle with a zero byte", post(b"/api/v0/bundle-files", b'{"paths":["/\\u0000"]}')),
        ("process of a number", post(b"/api/v0/processes/start", b'{"command":7}')),
        ("process with a zero byte", post(b"/api/v0/processes/start", b'{"command":"a\\u0000"}')),
        ("process with a lone surrogate", post(b"/api/v0/processes/start", b'{"command":"echo \\ud800"}')),
        (
            "process in a folder that is none",
            post(b"/api/v0/processes/start", b'{"command":"true","workdir":"/no/such"}'),
        ),
        ("process with variables of numbers", post(b"/api/v0/processes/start", b'{"command":"true","env":{"a":7}}')),
        (
            "process with a variable of an equals sign",
            post(b"/api/v0/processes/start", b'{"command":"true","env":{"a=b":"c"}}'),
        ),
        (
            "process with a variable of a zero byte",
            post(b"/api/v0/processes/start", b'{"command":"true","env":{"a":"\\u0000"}}'),
        ),
        ("output of a process that is none", get(b"/api/v0/processes/x/output")),
        ("output with a wait of NaN", get(b"/api/v0/processes/x/output?wait=true&timeout=nan")),
        ("signal to a process that is none", post(b"/api/v0/processes/x/signal", b'{"signal":"kill"}')),
        ("signal that is a list", post(b"/api/v0/processes/x/signal", b'{"signal":[]}')),
        ("signal that is no JSON", post(b"/api/v0/processes/x/signal", b"[]")),
        ("tool that is none", post(b"/api/v0/mcp/call-tool", b'{"tool_name":"x__y","arguments":7}')),
        ("tool of a number", post(b"/api/v0/mcp/call-tool", b'{"tool_name":7}')),
        (
            "dev container that is none",
            b"POST /api/v0/containers/devcontainers/x/recreate HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        ),
        ("write without a path", post(b"/api/v0/write-file", b"x")),
        ("write to a folder", post(b"/api/v0/write-file?path=/tmp", b"x")),
        ("write to a full device", post(b"/api/v0/write-file?path=/dev/full", b"x")),
        ("path to resolve of a zero byte", get(b"/api/v0/resolve-path?path=%00")),
        ("upgrade that is no JSON", post(b"/api/v0/upgrade", b"x")),
        ("watch without an upgrade", get(b"/api/v0/git/watch")),
        ("watch with a broken key", get(b"/api/v0/git/watch", b"Upgrade: websocket\r\nSec-WebSocket-Key: \xff\r\n")),
        ("debug log with a range", get(b"/debug/logs", b"Range: bytes=9-1\r\n")),
        ("method of letters", b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n"),
        (
            "length and chunks",
            b"POST /api/v0/edit-files HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            "two lengths",
            b"POST /api/v0/edit-files HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        ),
        (
            "length of 2**63",
            b"POST /api/v0/edit-files HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775808\r\n\r\n",
        ),
        (
            "10,000 chunks of a byte",
            b"POST /api/v0/edit-files HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"1\r\na\r\n" * 10_000
            + b"0\r\n\r\n",
        ),
        ("2,000 fields", get(b"/", b"A: b\r\n" * 2000)),
        ("no HTTP", bytes(1000)),
    ]
    return [kind("HTTP API of the agent", name, data, stage="http") for name, data in tries]


def _others() -> list[Kind]:
    def init(body: bytes, size: int | None = None) -> bytes:
        return pack("<H", len(body) if size is None else size) + body

    ident = b'"ID":"00000000-0000-4000-8000-0000000000aa"'
    terminal: list[tuple[str, bytes]] = [
        ("no message", b""),
        ("half a length", b"\5"),
        ("message cut by the end", init(b"{}", 500)),
        ("message of length 0", init(b"")),
        ("no JSON", init(b"hello")),
        ("list", init(b"[]")),
        ("no id", init(b"{}")),
        ("id of a number", init(b'{"ID":7}')),
        ("id of control characters", init(b'{"ID":"\\u001b[2J\\n","Command":"true"}')),
        ("id with a lone surrogate", init(b'{"ID":"\\ud800","Command":"true"}')),
        ("height infinite", init(b"{" + ident + b',"Height":1e999}')),
        ("height as list", init(b"{" + ident + b',"Height":[]}')),
        ("height of 5,000 digits", init(b"{" + ident + b',"Height":' + b"9" * 5000 + b"}")),
        ("height of 2**40", init(b"{" + ident + b',"Height":1099511627776,"Width":1099511627776}')),
        ("height negative", init(b"{" + ident + b',"Height":-5,"Width":-5}')),
        ("command with a lone surrogate", init(b"{" + ident + b',"Command":"echo \\ud800"}')),
        ("command of a list", init(b"{" + ident + b',"Command":["a"]}')),
        ("nested", init(b"[" * 60_000)),
        ("user of a container that is an option", init(b"{" + ident + b',"Container":"-x","ContainerUser":"--y"}')),
    ]
    found = [kind("terminal service of the agent", name, data, stage="pty") for name, data in terminal]
    speed: list[tuple[str, bytes]] = [
        ("no JSON", b"hello\n"),
        ("a number", b"7\n"),
        ("nested", b"[" * 50_000 + b"\n"),
        ("no end of the line", b"{" * 100_000),
        ("unknown version", b'{"version":99}\n'),
        ("duration infinite", b'{"version":2,"duration":1e999,"direction":0}\n'),
        ("duration negative", b'{"version":2,"duration":-5,"direction":0}\n'),
        ("duration of 5,000 digits", b'{"version":2,"duration":' + b"9" * 5000 + b"}\n"),
        ("direction of text", b'{"version":2,"duration":1,"direction":"x"}\n'),
        ("closed at once", b'{"version":2,"duration":1000000000,"direction":0}\n'),
    ]
    return found + [kind("speed test of the agent", name, data, stage="speed") for name, data in speed]


KINDS = [*_sftp(), *_http(), *_others()]
