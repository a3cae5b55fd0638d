"""Files of the built-in database, and the user it runs as: root may not run Postgres."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import itertools
import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coder.base.errors import CoderError

_SOCKET_PATH_LIMIT = 90  # 107 bytes is the kernel's limit for the whole path, ".s.PGSQL.5432.lock" included

_SYSTEM_ROOT = Path("/var/lib/coder-postgres")

_NOTE = "postgres-location"

_USERS = ("coder", "postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """User that Postgres runs as."""

    uid: int
    gid: int
    name: str
    switch: bool
    """Whether the server is root and must switch to another user."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Locations of one built-in database."""

    root: Path
    data: Path
    sockets: Path
    account: Account

    @property
    def url(self) -> str:
        return f"postgresql://coder@/coder?host={self.sockets}"

    @property
    def pid_file(self) -> Path:
        return self.data / "postmaster.pid"


def find_account(data_path: Path | None = None) -> Account:
    """Return the user that Postgres runs as: root switches to the owner of the data directory."""
    uid = os.geteuid()
    if uid != 0:
        return Account(uid, os.getegid(), "", False)
    if data_path is not None:
        path = data_path.expanduser()
        for part in (path / "postgres/data", path / "postgres", path):
            if (owner := _owner_of(part)) is not None:
                return owner
    for name in _USERS:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(entry.pw_uid, entry.pw_gid, name, True)
    raise CoderError(
        "postgres_failed",
        "PostgreSQL refuses to run as root and there is no other user",
        "Create a user called coder, or give --postgres-url.",
    )


def _owner_of(path: Path) -> Account | None:
    """Return the owner of a file unless that is root or an unknown user."""
    with contextlib.suppress(OSError, KeyError):
        info = path.stat()
        if info.st_uid != 0:
            return Account(info.st_uid, info.st_gid, pwd.getpwuid(info.st_uid).pw_name, True)
    return None


def find_cluster(data_path: Path, account: Account) -> Cluster | None:
    """Return the database of a data directory, None if there is none; creates nothing.

    Raises CoderError `no_access` when this user may not read it.
    """
    data_path = data_path.expanduser().absolute()
    try:
        root = data_path / "postgres"
        if data_path.is_dir() and not is_reachable(data_path, account):
            noted = _read_location(data_path)
            if noted is None:
                return None
            root = noted
        if not (root / "data" / "PG_VERSION").exists() or (root / "initialising").exists():
            return None
    except PermissionError as error:
        raise CoderError("no_access", f"this user may not read {data_path}") from error
    return Cluster(root, root / "data", _sockets_of(root, account), account)


def cluster_of(data_path: Path, account: Account) -> Cluster:
    """Return the location of a data directory's database; its folders are created."""
    data_path = data_path.expanduser().absolute()
    data_path.mkdir(parents=True, exist_ok=True)
    root = data_path / "postgres"
    if not is_reachable(data_path, account):
        # /root is closed to other users: Postgres' own folder cannot be below it.
        root = _external_root(data_path)
    make_folder(root, account, 0o711)
    sockets = _sockets_of(root, account)
    make_folder(sockets, account, 0o700)
    return Cluster(root, root / "data", sockets, account)


def _sockets_of(root: Path, account: Account) -> Path:
    sockets = root / "sock"
    if len(str(sockets)) <= _SOCKET_PATH_LIMIT:
        return sockets
    digest = hashlib.sha256(str(root).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"coder-pg-{account.uid}-{digest}"


def _external_root(data_path: Path) -> Path:
    """Return the folder for a data directory that Postgres cannot reach; a note in the directory names it.

    Without the note the directory is new. A folder at that location then belonged to another directory of the same path
    that was removed, and a new deployment must not find its users. It is left alone, and the new folder gets a number.
    """
    noted = _read_location(data_path)
    if noted is not None:
        return noted
    note = data_path / _NOTE
    name = hashlib.sha256(str(data_path).encode()).hexdigest()[:12]
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    root = next(item for item in (_SYSTEM_ROOT / each for each in names) if not (item / "data").exists())
    note.touch(0o600)
    note.write_text(f"{root}\n")
    return root


def _read_location(data_path: Path) -> Path | None:
    with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
        noted = Path(read_start(data_path / _NOTE).strip())
        if noted.parent == _SYSTEM_ROOT:
            return noted
    return None


def make_folder(path: Path, account: Account, mode: int) -> None:
    path.mkdir(parents=True, exist_ok=True)
    try:
        # By descriptor: the account may own the folder above, and replace this one by a link to any file of root's.
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise _foreign(path) from error
    try:
        if os.fstat(handle).st_uid not in {account.uid, os.geteuid()}:
            raise _foreign(path)
        if account.switch:
            os.fchown(handle, account.uid, account.gid)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def open_file(path: Path, flags: int) -> int:
    """Return the descriptor of a file in a folder of the account, created if missing, with mode 0600. Root must not
    follow a link that the account put there, nor wait for a pipe. Raises CoderError `postgres_failed`."""
    try:
        # A pipe would make the call wait for its other end.
        handle = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO, errno.EISDIR}:
            raise _foreign(path) from error
        raise
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise _foreign(path)


def read_start(path: Path) -> str:
    """Return the first 64 KiB of a small file. A pipe in its place is empty: a reader would wait for ever. Raises
    OSError, and UnicodeDecodeError for what is no text."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(1 << 16).decode()


def _foreign(path: Path) -> CoderError:
    return CoderError(
        "postgres_failed",
        f"{path} belongs to another user, or is a link or no plain file",
        "Remove it or choose another data directory.",
    )


def is_reachable(path: Path, account: Account) -> bool:
    """Return whether `account` can walk to `path`."""
    return not account.switch or all(
        (info := part.stat()).st_mode & stat.S_IXOTH or (info.st_uid == account.uid and info.st_mode & stat.S_IXUSR)
        for part in (path, *path.parents)
    )


@contextlib.contextmanager
def temporary_root(account: Account) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="coder-ephemeral-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711 if account.switch else 0o700)
        yield folder


def give_to_owner(handle: int, cluster: Cluster) -> None:
    """Give a file that root opened to the owner of the data directory: a server that runs as that user opens it."""
    if cluster.account.switch:
        owner = cluster.root.parent.stat()
        os.fchown(handle, owner.st_uid, owner.st_gid)


@contextlib.contextmanager
def locked(cluster: Cluster) -> Iterator[None]:
    """Hold the lock that keeps a data directory to one server."""
    handle = open_file(cluster.root / "server.lock", os.O_RDWR)
    try:
        give_to_owner(handle, cluster)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CoderError(
                "data_dir_in_use",
                f"another server is using {cluster.root.parent}",
                "Stop it first, or choose another data directory.",
            ) from (None if isinstance(error, BlockingIOError) else error)
        yield
    finally:
        os.close(handle)
