"""Tries at the supervisor and its links: reports of a process, orders to one, ends of processes, refusals of the system.

Only programs of the server's own user can send the messages, and only the system refuses: a defect, a full disk, a
cleaner of temporary folders, an operator with `kill`.
"""

from __future__ import annotations

import errno
import signal

DEEP = 100_000
_REPORT, _ORDER = b'{"kind":"beat"', b'{"kind":"siblings"'

_FORMS: dict[str, bytes] = {
    "nothing": b"",
    "a space": b" ",
    "a NUL": b"\0",
    "1,000 line ends": b"\n" * 1000,
    "a carriage return": b"\r",
    "no JSON": b"hello",
    "a byte of no UTF-8": b"\xff",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"kind":"x"}'.encode("utf-16-le"),
    "null": b"null",
    "true": b"true",
    "a number": b"7",
    "a number of 100,000 digits": b"9" * 100_000,
    "an infinite number": b"1e999999",
    "NaN": b"NaN",
    "a text": b'"beat"',
    "an unfinished text": b'"beat',
    "a list": b"[]",
    "a list of texts": b'["beat"]',
    "an empty object": b"{}",
    "an unfinished object": b"{",
    "two objects": b"{}{}",
    "a comma more": b'{"kind":"x",}',
    "single quotes": b"{'kind':'x'}",
    "a comment": b'{"kind":"x"}//x',
    "a text after it": b'{"kind":"x"} x',
    "a list 100,000 deep": b"[" * DEEP,
    "an object 100,000 deep": b'{"a":' * DEEP,
    "a key of no UTF-8": b'{"\xff":1}',
    "a key of half a surrogate pair": b'{"\\ud800":1}',
    "60,000 keys": b"{" + b",".join(b'"%d":1' % number for number in range(60_000)) + b"}",
    "kind null": b'{"kind":null}',
    "kind a number": b'{"kind":1}',
    "kind a list": b'{"kind":[]}',
    "kind an object": b'{"kind":{}}',
    "kind unknown": b'{"kind":"dance"}',
    "kind empty": b'{"kind":""}',
    "kind in other letters": b'{"kind":"BEAT"}',
    "kind with a space": b'{"kind":"beat "}',
    "kind twice": b'{"kind":"dance","kind":1}',
    "kind of 900 KB": b'{"kind":"' + b"x" * 900_000 + b'"}',
    "kind of no UTF-8": b'{"kind":"\xff"}',
    "kind of overlong UTF-8": b'{"kind":"\xc0\x80"}',
    "kind of a surrogate in UTF-8": b'{"kind":"\xed\xa0\x80"}',
    "kind of half a surrogate pair": b'{"kind":"\\ud800"}',
    "kind with a control character": b'{"kind":"a\x01"}',
    "kind with an unknown escape": b'{"kind":"\\x41"}',
    "kind with half an escape": b'{"kind":"\\u00"}',
}
"""For both directions."""


def _deep(start: bytes) -> dict[str, bytes]:
    """Return what makes a message of the other kinds: further fields of no use."""
    end = b"}"
    return {
        "an unknown field": start + b',"x":1' + end,
        "an unknown field 100,000 deep": start + b',"x":' + b"[" * DEEP + b"]" * DEEP + end,
        "an unknown field of objects, deep": start + b',"x":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + end,
        "an unknown field of no UTF-8": start + b',"x":"\xff"' + end,
        "an unknown field of 900 KB": start + b',"x":"' + b"y" * 900_000 + b'"' + end,
        "50,000 unknown fields": start + b"".join(b',"%d":1' % number for number in range(50_000)) + end,
        "a message longer than allowed": start + b',"x":"' + b"y" * 3_000_000 + b'"' + end,
        "30 MB without an end": b"x" * 30_000_000,
    }


def _fields(start: bytes, fields: dict[str, tuple[bytes, ...]]) -> dict[str, bytes]:
    return {
        f"{name} {value.decode('latin-1')[:40]}": start + b',"' + name.encode() + b'":' + value + b"}"
        for name, values in fields.items()
        for value in values
    }


_NO_TEXT = (b"1", b"null", b"[]", b"{}", b"true", b'"\xff"')
REPORTS = {
    **_FORMS,
    **_deep(_REPORT),
    **_fields(_REPORT, dict.fromkeys(("access_url", "database_url", "code", "message", "hint"), _NO_TEXT)),
}
"""From a process to the supervisor. None may change a thing but the time of the last heartbeat."""
_NO_LIST = (b"1", b"null", b'"x"', b"{}", b"[[]]", b"[1]", b"[null]")
_SIBLING = b'{"name":"a","replica":"%s","socket_path":"p","duties":["http"]}'
ORDERS = {
    **_FORMS,
    **_deep(_ORDER),
    **_fields(
        _ORDER,
        {
            "living": (*_NO_LIST, b"[" + _SIBLING % b"x" + b"]", b'[{"name":1}]', b'[{"name":"\xff"}]'),
            "lost": (*_NO_LIST, b'["x"]', b'["\xff"]', b'["00000000-0000-0000-0000-00000000000g"]'),
            "incidents": (*_NO_LIST, b'[{"process":1}]', b'[{"at":"x"}]'),
            "restarts": (*_NO_LIST, b'[["a"]]', b'[["a","b","c"]]', b'[["a","b",1e99]]', b'[["a","b",-0.5]]'),
        },
    ),
}
"""From the supervisor to a process. None may stop it."""

SIGNALS = tuple(range(1, signal.NSIG))
"""All numbers, real-time signals that have no name in Python among them."""
STATUSES = (0, 1, 2, 3, 42, 70, 77, 126, 127, 128, 137, 143, 254, 255)

REFUSALS: dict[str, tuple[str, tuple[int, ...]]] = {
    "fork": ("os.fork", (errno.EAGAIN, errno.ENOMEM, errno.ENOSYS, errno.EPERM)),
    "a pair of sockets": ("socket.socketpair", (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)),
    "a socket": ("socket.socket", (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES)),
    "its address": (
        "socket.bind",
        (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EADDRINUSE, errno.EIO, errno.ENOENT),
    ),
    "listening": ("socket.listen", (errno.EADDRINUSE, errno.ENOBUFS)),
    "the former address": ("unlink", (errno.EROFS, errno.EACCES, errno.EIO, errno.EISDIR, errno.EBUSY, errno.EPERM)),
    "a new folder": ("mkdtemp", (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EMLINK)),
    "a watch": ("register", (errno.ENOSPC, errno.ENOMEM, errno.EMFILE)),
    "standard output": ("stdout", (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF)),
    "standard error": ("stderr", (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF)),
    "sending": ("send", (errno.EAGAIN, errno.EPIPE, errno.ECONNRESET, errno.ENOBUFS, errno.EMSGSIZE, errno.ENOMEM)),
    "receiving": ("recv", (errno.ECONNRESET, errno.EIO, errno.ENOMEM, errno.ENOTCONN)),
    "waiting": ("waitpid", (errno.ECHILD,)),
    "signalling": ("kill", (errno.ESRCH,)),
    "a start of the program": (
        "posix_spawn",
        (errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ETXTBSY, errno.E2BIG, errno.ENOMEM, errno.EAGAIN, errno.EIO),
    ),
    "its execution": (
        "execve",
        (errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ETXTBSY, errno.E2BIG, errno.ENOMEM, errno.EIO, errno.EMFILE),
    ),
}
"""What the system refuses once, and with which errors, while a lost process is replaced or the program reloads."""
FOLDER = ("gone", "a file", "a link to another", "another user's")
"""What became of the folder of the processes' sockets."""
