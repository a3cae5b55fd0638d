"""Tries against an agent's SSH server, before and after the login; agent_services.py has its other services.

The stage `ssh` sends bytes first; `packet` sends packets (type, body) of an open SSH connection; `session` sends them
on an open channel CHANNEL.
"""

from __future__ import annotations

from struct import pack

from tests.attacks.strangers.kinds import Kind, kind

IDENT = b"SSH-2.0-x\r\n"
SERVICE, ACCEPT, KEXINIT, NEWKEYS = 5, 6, 20, 21
USERAUTH, GLOBAL, OPEN, WINDOW, DATA, EXTENDED, EOF, CLOSE, REQUEST = 50, 80, 90, 93, 94, 95, 96, 97, 98
CHANNEL = b"<chn"
"Stands for the server's number of the channel."


def text(value: bytes) -> bytes:
    return pack("!I", len(value)) + value


def number(value: int) -> bytes:
    return pack("!I", value)


def raw(type_: int, body: bytes = b"", length: int | None = None, padding: int | None = None) -> bytes:
    """An unencrypted SSH packet."""
    if padding is None:
        padding = 8 - (len(body) + 6) % 8 + 4
    packed = bytes([padding & 0xFF, type_]) + body + bytes(padding)
    return number(len(packed) if length is None else length) + packed


def kexinit(*lists: bytes) -> bytes:
    defaults = (
        b"curve25519-sha256",
        b"ssh-ed25519",
        b"aes128-ctr",
        b"aes128-ctr",
        b"hmac-sha2-256",
        b"hmac-sha2-256",
        b"none",
        b"none",
        b"",
        b"",
    )
    chosen = (*lists, *defaults[len(lists) :])
    return bytes(16) + b"".join(text(item) for item in chosen) + b"\0" + bytes(4)


def _raw_ssh() -> list[Kind]:
    group = "SSH: version and key exchange"
    tries: list[tuple[str, bytes]] = [
        ("nothing", b""),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("TLS", b"\x16\x03\x01\x00\xa5" + bytes(165)),
        ("zeros", bytes(5000)),
        ("version 1", b"SSH-1.5-x\r\n"),
        ("version 1.99", b"SSH-1.99-x\r\n"),
        ("version 3", b"SSH-3.0-x\r\n"),
        ("version without software", b"SSH-2.0-\r\n"),
        ("version of 300 bytes", b"SSH-2.0-" + b"a" * 300 + b"\r\n"),
        ("version of 100 KB without an end", b"SSH-2.0-" + b"a" * 100_000),
        ("version of control characters", b"SSH-2.0-\x1b[2J\x07\r\n"),
        ("version of broken UTF-8", b"SSH-2.0-\xff\xfe\r\n"),
        ("version with LF alone", b"SSH-2.0-x\n"),
        ("2,000 lines before the version", b"hello\r\n" * 2000 + IDENT),
        ("two versions", IDENT * 2),
        ("packet of length 0", IDENT + number(0)),
        ("packet of length 1", IDENT + number(1) + b"\0"),
        ("packet of 4 GiB", IDENT + number(0xFFFFFFFF) + bytes(100)),
        ("packet of 100 KB", IDENT + number(100_000) + bytes(100_000)),
        ("padding longer than the packet", IDENT + raw(2, b"", padding=255, length=12)),
        ("length that is no multiple", IDENT + number(13) + b"\4\2" + bytes(11)),
        ("packet cut by the end", IDENT + raw(KEXINIT, kexinit())[:50]),
        ("unknown packet type", IDENT + raw(199)),
        ("type 0", IDENT + raw(0)),
        ("ignore packets", IDENT + raw(2, text(b"x")) * 2000),
        ("debug packet of control characters", IDENT + raw(4, b"\1" + text(b"\x1b[2J\r\n") + text(b""))),
        ("debug packet cut short", IDENT + raw(4, b"\1")),
        ("disconnect", IDENT + raw(1, number(11) + text(b"bye") + text(b""))),
        ("disconnect of broken UTF-8", IDENT + raw(1, number(11) + text(b"\xff\xfe") + text(b"\xff"))),
        ("disconnect with a code of 2**32-1", IDENT + raw(1, number(0xFFFFFFFF) + text(b"") + text(b""))),
        ("unimplemented", IDENT + raw(3, number(0))),
        ("key exchange without lists", IDENT + raw(KEXINIT, bytes(16))),
        ("lists of empty names", IDENT + raw(KEXINIT, kexinit(b"", b"", b"", b"", b"", b""))),
        ("lists of commas", IDENT + raw(KEXINIT, kexinit(b"," * 1000))),
        ("lists of unknown names", IDENT + raw(KEXINIT, kexinit(b"x", b"y", b"z"))),
        ("lists of broken UTF-8", IDENT + raw(KEXINIT, kexinit(b"\xff\xfe"))),
        ("a list of 30 KB", IDENT + raw(KEXINIT, kexinit(b"a," * 15_000))),
        ("a list longer than the packet", IDENT + raw(KEXINIT, bytes(16) + number(5000) + b"x")),
        ("cipher none", IDENT + raw(KEXINIT, kexinit(b"curve25519-sha256", b"ssh-ed25519", b"none", b"none"))),
        ("key exchange twice", IDENT + raw(KEXINIT, kexinit()) * 2),
        ("wrong guess announced", IDENT + raw(KEXINIT, kexinit()[:-5] + b"\1" + bytes(4))),
        ("new keys before the exchange", IDENT + raw(NEWKEYS)),
        ("service before the exchange", IDENT + raw(SERVICE, text(b"ssh-userauth"))),
        ("login before the exchange", IDENT + raw(USERAUTH, text(b"u") + text(b"ssh-connection") + text(b"none"))),
        (
            "channel before the exchange",
            IDENT + raw(OPEN, text(b"session") + number(0) + number(1 << 20) + number(1 << 15)),
        ),
        ("empty public value", IDENT + raw(KEXINIT, kexinit()) + raw(30, text(b""))),
        ("public value of zeros", IDENT + raw(KEXINIT, kexinit()) + raw(30, text(bytes(32)))),
        ("public value of 31 bytes", IDENT + raw(KEXINIT, kexinit()) + raw(30, text(bytes(31)))),
        ("public value of 30 KB", IDENT + raw(KEXINIT, kexinit()) + raw(30, text(bytes(30_000)))),
        ("public value of small order", IDENT + raw(KEXINIT, kexinit()) + raw(30, text(b"\1" + bytes(31)))),
        ("answer instead of a public value", IDENT + raw(KEXINIT, kexinit()) + raw(31, text(b"x") * 3)),
        (
            "ECDH point that is none",
            IDENT + raw(KEXINIT, kexinit(b"ecdh-sha2-nistp256")) + raw(30, text(b"\4" + b"\xff" * 64)),
        ),
        ("ECDH point at infinity", IDENT + raw(KEXINIT, kexinit(b"ecdh-sha2-nistp256")) + raw(30, text(b"\0"))),
        (
            "group exchange of 1 bit",
            IDENT + raw(KEXINIT, kexinit(b"diffie-hellman-group-exchange-sha256")) + raw(34, number(1) * 3),
        ),
        (
            "group exchange of 2**31 bits",
            IDENT + raw(KEXINIT, kexinit(b"diffie-hellman-group-exchange-sha256")) + raw(34, number(1 << 31) * 3),
        ),
        (
            "Diffie-Hellman value 0",
            IDENT + raw(KEXINIT, kexinit(b"diffie-hellman-group14-sha256")) + raw(30, text(b"\0")),
        ),
        (
            "Diffie-Hellman value negative",
            IDENT + raw(KEXINIT, kexinit(b"diffie-hellman-group14-sha256")) + raw(30, text(b"\xff" * 20)),
        ),
        ("new keys without a public value", IDENT + raw(KEXINIT, kexinit()) + raw(NEWKEYS)),
    ]
    found = [kind(group, name, data, stage="ssh") for name, data in tries]
    ends = [("reset", "reset"), ("close", "close"), ("hold", "hold")]
    for name, then in ends:
        found.append(kind("SSH: ends", f"{name} without a byte", b"", stage="ssh", then=then))
        found.append(kind("SSH: ends", f"{name} after the version", IDENT, stage="ssh", then=then))
        found.append(
            kind("SSH: ends", f"{name} in the key exchange", IDENT + raw(KEXINIT, kexinit()), stage="ssh", then=then)
        )
    return found


def _packets() -> list[Kind]:
    def sent(type_: int, body: bytes = b"") -> bytes:
        return bytes([type_]) + body

    session = text(b"session") + number(9) + number(1 << 20) + number(1 << 15)
    tries: list[tuple[str, tuple[bytes, ...]]] = [
        ("unknown type", (sent(199),)),
        ("type 0", (sent(0),)),
        ("key exchange again", (sent(KEXINIT, kexinit()),)),
        ("new keys out of order", (sent(NEWKEYS),)),
        ("service again", (sent(SERVICE, text(b"ssh-userauth")),)),
        ("unknown service", (sent(SERVICE, text(b"\xff")),)),
        ("login again", (sent(USERAUTH, text(b"root") + text(b"ssh-connection") + text(b"none")),)),
        ("login success from a client", (sent(52),)),
        ("global request without a name", (sent(GLOBAL),)),
        ("global request unknown", (sent(GLOBAL, text(b"x@y") + b"\1"),)),
        ("global request of broken UTF-8", (sent(GLOBAL, text(b"\xff\xfe") + b"\1"),)),
        ("500 keepalives", (sent(GLOBAL, text(b"keepalive@openssh.com") + b"\1"),) * 500),
        ("forward of port 65536", (sent(GLOBAL, text(b"tcpip-forward") + b"\1" + text(b"") + number(65536)),)),
        ("forward of port 2**32-1", (sent(GLOBAL, text(b"tcpip-forward") + b"\1" + text(b"") + number(0xFFFFFFFF)),)),
        ("forward of a name", (sent(GLOBAL, text(b"tcpip-forward") + b"\1" + text(b"no.such.invalid") + number(0)),)),
        ("forward of a zero byte", (sent(GLOBAL, text(b"tcpip-forward") + b"\1" + text(b"\0") + number(0)),)),
        ("forward cut short", (sent(GLOBAL, text(b"tcpip-forward") + b"\1"),)),
        (
            "end of a forward that is none",
            (sent(GLOBAL, text(b"cancel-tcpip-forward") + b"\1" + text(b"") + number(9)),),
        ),
        (
            "socket forward to a folder",
            (sent(GLOBAL, text(b"streamlocal-forward@openssh.com") + b"\1" + text(b"/tmp")),),
        ),
        (
            "socket forward of 5 KB",
            (sent(GLOBAL, text(b"streamlocal-forward@openssh.com") + b"\1" + text(b"/" + b"a" * 5000)),),
        ),
        (
            "socket forward of a zero byte",
            (sent(GLOBAL, text(b"streamlocal-forward@openssh.com") + b"\1" + text(b"/tmp/\0")),),
        ),
        (
            "socket forward of an empty path",
            (sent(GLOBAL, text(b"streamlocal-forward@openssh.com") + b"\1" + text(b"")),),
        ),
        ("host keys of a client", (sent(GLOBAL, text(b"hostkeys-00@openssh.com") + b"\0" + text(b"x")),)),
        ("answer to no global request", (sent(81),)),
        ("channel of an unknown kind", (sent(OPEN, text(b"x") + number(9) + number(1) + number(1)),)),
        ("channel without a window", (sent(OPEN, text(b"session") + number(9) + number(0) + number(0)),)),
        ("channel cut short", (sent(OPEN, text(b"session")),)),
        ("two channels of one number", (sent(OPEN, session), sent(OPEN, session))),
        (
            "500 channels",
            tuple(
                sent(OPEN, text(b"session") + number(100 + n) + number(1 << 20) + number(1 << 15)) for n in range(500)
            ),
        ),
        (
            "forwarded channel from a client",
            (sent(OPEN, text(b"forwarded-tcpip") + number(9) + number(1) + number(1)),),
        ),
        (
            "agent channel from a client",
            (sent(OPEN, text(b"auth-agent@openssh.com") + number(9) + number(1) + number(1)),),
        ),
        (
            "X11 channel from a client",
            (sent(OPEN, text(b"x11") + number(9) + number(1) + number(1) + text(b"x") + number(1)),),
        ),
        (
            "connection to port 0",
            (
                sent(
                    OPEN,
                    text(b"direct-tcpip")
                    + number(9)
                    + number(1 << 20)
                    + number(1 << 15)
                    + text(b"localhost")
                    + number(0)
                    + text(b"")
                    + number(0),
                ),
            ),
        ),
        (
            "connection to port 2**32-1",
            (
                sent(
                    OPEN,
                    text(b"direct-tcpip")
                    + number(9)
                    + number(1 << 20)
                    + number(1 << 15)
                    + text(b"localhost")
                    + number(0xFFFFFFFF)
                    + text(b"")
                    + number(0),
                ),
            ),
        ),
        (
            "connection to a zero byte",
            (
                sent(
                    OPEN,
                    text(b"direct-tcpip")
                    + number(9)
                    + number(1 << 20)
                    + number(1 << 15)
                    + text(b"\0")
                    + number(80)
                    + text(b"")
                    + number(0),
                ),
            ),
        ),
        (
            "connection to a name of 5 KB",
            (
                sent(
                    OPEN,
                    text(b"direct-tcpip")
                    + number(9)
                    + number(1 << 20)
                    + number(1 << 15)
                    + text(b"a" * 5000)
                    + number(80)
                    + text(b"")
                    + number(0),
                ),
            ),
        ),
        (
            "connection to broken UTF-8",
            (
                sent(
                    OPEN,
                    text(b"direct-tcpip")
                    + number(9)
                    + number(1 << 20)
                    + number(1 << 15)
                    + text(b"\xff")
                    + number(80)
                    + text(b"")
                    + number(0),
                ),
            ),
        ),
        (
            "connection to a socket that is a folder",
            (
                sent(
                    OPEN,
                    text(b"direct-streamlocal@openssh.com")
                    + number(9)
                    + number(1 << 20)
                    + number(1 << 15)
                    + text(b"/tmp")
                    + text(b"")
                    + number(0),
                ),
            ),
        ),
        (
            "connection to a socket of 5 KB",
            (
                sent(
                    OPEN,
                    text(b"direct-streamlocal@openssh.com")
                    + number(9)
                    + number(1 << 20)
                    + number(1 << 15)
                    + text(b"/" * 5000)
                    + text(b"")
                    + number(0),
                ),
            ),
        ),
        (
            "connection to a socket of a zero byte",
            (
                sent(
                    OPEN,
                    text(b"direct-streamlocal@openssh.com")
                    + number(9)
                    + number(1 << 20)
                    + number(1 << 15)
                    + text(b"/\0")
                    + text(b"")
                    + number(0),
                ),
            ),
        ),
        (
            "tunnel device",
            (sent(OPEN, text(b"tun@openssh.com") + number(9) + number(1) + number(1) + number(1) + number(0)),),
        ),
        ("data for a channel that is none", (sent(DATA, number(77) + text(b"x")),)),
        ("window for a channel that is none", (sent(WINDOW, number(77) + number(1)),)),
        ("close of a channel that is none", (sent(CLOSE, number(77)),)),
        ("request for a channel that is none", (sent(REQUEST, number(77) + text(b"shell") + b"\1"),)),
        ("confirmation of a channel that is none", (sent(91, number(77) * 4),)),
        ("failure of a channel that is none", (sent(92, number(77) + number(1) + text(b"x") + text(b"")),)),
        ("disconnect of control characters", (sent(1, number(2) + text(b"\x1b[2J\r\nx") + text(b"")),)),
        ("ping extension of 30 KB", (sent(192, text(bytes(30_000))),)),
    ]
    found = [Kind("SSH: packets of a connection", name, data, "packet") for name, data in tries]

    def request(name: bytes, body: bytes = b"", reply: bytes = b"\1") -> bytes:
        return sent(REQUEST, CHANNEL + text(name) + reply + body)

    def pty(term: bytes = b"xterm", w: int = 80, h: int = 24, modes: bytes = b"\0") -> bytes:
        return request(b"pty-req", text(term) + number(w) + number(h) + number(0) * 2 + text(modes))

    shell = request(b"shell")
    sessions: list[tuple[str, tuple[bytes, ...]]] = [
        ("request without a name", (sent(REQUEST, CHANNEL),)),
        ("unknown request", (request(b"x@y"),)),
        ("request of broken UTF-8", (request(b"\xff\xfe"),)),
        ("two shells", (shell, shell)),
        ("shell and exec", (shell, request(b"exec", text(b"true")))),
        ("exec without a command", (request(b"exec"),)),
        ("exec of an empty command", (request(b"exec", text(b"")),)),
        ("exec of a zero byte", (request(b"exec", text(b"a\0b")),)),
        ("exec of broken UTF-8", (request(b"exec", text(b"echo \xff")),)),
        ("exec of 200 KB", (request(b"exec", text(b"true " + b"a" * 200_000)),)),
        ("exec of an unclosed quote", (request(b"exec", text(b"'")),)),
        ("exec that prints forever", (request(b"exec", text(b"yes")),)),
        ("exec that closes its output", (request(b"exec", text(b"exec >&- 2>&-; sleep 0.1")),)),
        ("exec that kills itself", (request(b"exec", text(b"kill -9 $$")),)),
        ("unknown subsystem", (request(b"subsystem", text(b"netconf")),)),
        ("subsystem of dots", (request(b"subsystem", text(b"../../sftp")),)),
        ("terminal of size 0", (pty(w=0, h=0), shell)),
        ("terminal of size 2**32-1", (pty(w=0xFFFFFFFF, h=0xFFFFFFFF), shell)),
        ("terminal name of a zero byte", (pty(b"x\0y"), shell)),
        ("terminal name of 30 KB", (pty(b"x" * 30_000), shell)),
        ("terminal name of broken UTF-8", (pty(b"\xff"), shell)),
        ("modes cut short", (pty(modes=b"\x35\0\0"), shell)),
        ("unknown modes", (pty(modes=b"".join(bytes([n]) + number(0xFFFFFFFF) for n in range(1, 160)) + b"\0"), shell)),
        ("speeds of 2**32-1", (pty(modes=b"\x80" + number(0xFFFFFFFF) + b"\x81" + number(0xFFFFFFFF) + b"\0"), shell)),
        ("two terminals", (pty(), pty(), shell)),
        ("terminal after the shell", (shell, pty())),
        ("size without a terminal", (request(b"window-change", number(1) * 4, b"\0"),)),
        ("2,000 sizes", (pty(), shell, *(request(b"window-change", number(n + 1) * 4, b"\0") for n in range(2000)))),
        ("size cut short", (pty(), shell, request(b"window-change", number(1), b"\0"))),
        ("size of 2**32-1", (pty(), shell, request(b"window-change", number(0xFFFFFFFF) * 4, b"\0"))),
        ("variable without a name", (request(b"env", text(b"") + text(b"x")), shell)),
        ("variable with an equals sign", (request(b"env", text(b"A=B") + text(b"x")), shell)),
        ("variable with a zero byte", (request(b"env", text(b"A") + text(b"\0")), shell)),
        ("variable of broken UTF-8", (request(b"env", text(b"A") + text(b"\xff")), shell)),
        ("variable LD_PRELOAD", (request(b"env", text(b"LD_PRELOAD") + text(b"/no/such")), shell)),
        ("2,000 variables", (*(request(b"env", text(b"A%d" % n) + text(b"x"), b"\0") for n in range(2000)), shell)),
        (
            "variables of 3 MB",
            (*(request(b"env", text(b"B%d" % n) + text(b"x" * 30_000), b"\0") for n in range(100)), shell),
        ),
        ("variable after the shell", (shell, request(b"env", text(b"A") + text(b"x")))),
        ("signal before the shell", (request(b"signal", text(b"KILL"), b"\0"),)),
        ("unknown signal", (shell, request(b"signal", text(b"XYZ"), b"\0"))),
        ("signal as a number", (shell, request(b"signal", text(b"9"), b"\0"))),
        ("signal of broken UTF-8", (shell, request(b"signal", text(b"\xff"), b"\0"))),
        ("stop signal", (shell, request(b"signal", text(b"STOP"), b"\0"))),
        ("break", (pty(), shell, request(b"break", number(500)))),
        ("agent forwarding three times", (*[request(b"auth-agent-req@openssh.com")] * 3, shell)),
        ("X11 of nonsense", (request(b"x11-req", b"\0" + text(b"x") + text(b"\xff") + number(0xFFFFFFFF)), shell)),
        ("X11 cut short", (request(b"x11-req"), shell)),
        ("exit status from a client", (request(b"exit-status", number(7), b"\0"),)),
        ("data before the shell", (sent(DATA, CHANNEL + text(b"x")), shell)),
        ("data beyond the window", (*[sent(DATA, CHANNEL + text(bytes(32_000)))] * 80,)),
        ("data of a length that lies", (sent(DATA, CHANNEL + number(5000) + b"x"),)),
        ("extended data of an unknown kind", (sent(EXTENDED, CHANNEL + number(99) + text(b"x")),)),
        ("data after EOF", (shell, sent(EOF, CHANNEL), sent(DATA, CHANNEL + text(b"x")))),
        ("EOF twice", (shell, sent(EOF, CHANNEL), sent(EOF, CHANNEL))),
        ("requests after close", (shell, sent(CLOSE, CHANNEL), request(b"shell"))),
        ("close twice", (sent(CLOSE, CHANNEL), sent(CLOSE, CHANNEL))),
        (
            "window beyond 2**32",
            (sent(WINDOW, CHANNEL + number(0xFFFFFFFF)), sent(WINDOW, CHANNEL + number(0xFFFFFFFF)), shell),
        ),
        ("window cut short", (sent(WINDOW, CHANNEL),)),
    ]
    return found + [Kind("SSH: sessions", name, data, "session") for name, data in sessions]


KINDS = [*_raw_ssh(), *_packets()]
