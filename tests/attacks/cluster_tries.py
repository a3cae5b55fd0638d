"""States in which a built-in PostgreSQL may find its folder: what crashes, other programs, disks and operators leave."""

from __future__ import annotations

_TEN = "\n".join(["{pid}", "/elsewhere", "1700000000", "5432", "/elsewhere", "", "  5432001   131072", "ready   "])
PID_FILES: dict[str, str] = {
    "empty": "",
    "a line end": "\n",
    "100 line ends": "\n" * 100,
    "a NUL": "\0",
    "no number": "postgres\n",
    "a fraction": "1.5\n",
    "a number with underscores": "1_0\n",
    "other digits": "١٢\n",
    "spaces around": "  {pid}  \n",
    "hexadecimal": "0x10\n",
    "zero": _TEN.format(pid=0),
    "a negative": _TEN.format(pid=-5),
    "every process": _TEN.format(pid=-1),
    "init": _TEN.format(pid=1),
    "2^22": _TEN.format(pid=1 << 22),
    "2^31": _TEN.format(pid=1 << 31),
    "2^63": _TEN.format(pid=1 << 63),
    "2^64": _TEN.format(pid=1 << 64),
    "5,000 digits": _TEN.format(pid="9" * 5000),
    "the server's own process": _TEN,
    "the server's own process, starting": _TEN.replace("ready   ", "starting"),
    "the server's own process, stopping": _TEN.replace("ready   ", "stopping"),
    "the server's own process, a line alone": "{pid}\n",
    "the server's own process, carriage returns": _TEN.replace("\n", "\r\n"),
    "another user's process": _TEN.replace("{pid}", "{other}"),
    "another cluster's PostgreSQL": _TEN.replace("{pid}", "{cluster}"),
    "10,000 lines": "1\n" * 10_000,
    "a line of 1 MB": "9" * 1_000_000,
    "cut within the number": "1",
    "a shared memory of another": _TEN.replace("5432001   131072", "0 0").replace("{pid}", "4194304"),
}
"""Contents of `postmaster.pid` beside a stopped cluster."""

LOGS: dict[str, bytes] = {
    "empty": b"",
    "NULs": bytes(1000),
    "no UTF-8": b"\xff" * 1000,
    "line ends": b"\n" * 100_000,
    "carriage returns": b"\r" * 1000,
    "a line of 3 MB": b"x" * 3_000_000,
    "3 MB of lines": b"LOG:  x\n" * 400_000,
    "3 MB of fatal lines": b"FATAL:  x\n" * 300_000,
    "3 MB of starts": b"LOG:  starting PostgreSQL\n" * 120_000,
    "hints alone": b"HINT:  x\nDETAIL:  y\n",
    "control characters": b"FATAL:  \x1b[2J\x07\n",
    "half a character": "FATAL:  ü".encode()[:-1],
    "UTF-16": "FATAL:  x".encode("utf-16"),
    "other languages": "FATAL:  数据库\n".encode(),
    "other separators": "FATAL:  a\u2028FATAL:  b\x85\x0b\x0c".encode(),
}
"""Contents of `postgres.log`."""

FILES = (
    "server.lock",
    "postgres.log",
    "initialising",
    "data/postmaster.pid",
    "data/PG_VERSION",
    "data/pg_hba.conf",
    "data/postgresql.auto.conf",
    "data/postmaster.opts",
    "sock/.s.PGSQL.5432",
    "sock/.s.PGSQL.5432.lock",
)
FORMS = ("a folder", "a pipe", "a link to a file", "a link to nothing", "a link to itself", "a socket", "no rights")
"""What may lie in a file's place. `no rights`: the file of before, with mode 0."""
FOLDERS = ("data", "sock", "data/pg_wal", "data/base", "data/global", "data/pg_tblspc", "data/pg_notify")
FOLDER_FORMS = ("missing", "empty", "a file", "a link to another", "another user's", "open to all")
LOST = (
    "PG_VERSION",
    "pg_hba.conf",
    "pg_ident.conf",
    "postgresql.conf",
    "postgresql.auto.conf",
    "postmaster.opts",
    "global/pg_control",
    "global/pg_filenode.map",
    "base/1/pg_filenode.map",
    "base/1/PG_VERSION",
    "pg_xact/0000",
    "pg_multixact/offsets/0000",
)
CONTENTS: dict[str, bytes | None] = {
    "missing": None,
    "empty": b"",
    "zeros": bytes(8192),
    "ones": b"\xff" * 8192,
    "text": b"hello\n" * 100,
    "half": b"<half>",
}
"""Contents of each lost file."""
SETTINGS: dict[str, str] = {
    "no sense": "@@@",
    "an unknown setting": "no_such_setting = on",
    "itself": "include = 'postgresql.conf'",
    "a missing file": "include = '/nonexistent'",
    "a folder": "include_dir = '/'",
    "another data folder": "data_directory = '/nonexistent'",
    "another port": "port = 1",
    "a port in use": "port = 5433",
    "all addresses": "listen_addresses = '*'",
    "another folder of sockets": "unix_socket_directories = '/nonexistent'",
    "no connections": "max_connections = 0",
    "a connection": "max_connections = 1",
    "10^9 connections": "max_connections = 1000000000",
    "reserved connections": "superuser_reserved_connections = 99",
    "an absent library": "shared_preload_libraries = 'nonexistent'",
    "TLS without a certificate": "ssl = on",
    "a log elsewhere": "logging_collector = on\nlog_directory = '/nonexistent'",
    "a pid file elsewhere": "external_pid_file = '/nonexistent/x'",
    "an archive that fails": "archive_mode = on\narchive_command = 'false'",
    "read-only": "default_transaction_read_only = on",
    "little memory": "shared_buffers = 16",
    "64 TB of memory": "shared_buffers = 64TB",
    "huge pages": "huge_pages = on",
    "a minimal log": "wal_level = minimal\nmax_wal_senders = 10",
    "synchronous standbys": "synchronous_standby_names = 'x'",
    "an hour of waiting": "post_auth_delay = 0\nauthentication_timeout = 600",
    "a file of 100,000 lines": "work_mem = 4MB\n" * 100_000,
    "NULs": "\0" * 100,
    "an unfinished text": "application_name = 'x",
    "another time zone": "timezone = 'Mars/Olympus'",
}
"""Lines at the end of `postgresql.conf`. Command line and socket folder of ours overrule some."""
