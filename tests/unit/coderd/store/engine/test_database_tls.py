"""A real PostgreSQL with a certificate of a private authority, client certificates and a password with an @."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from sqlalchemy import text

from coder.base.errors import CoderError
from coder.coderd.store.engine.availability import DatabaseAwayError
from coder.coderd.store.engine.database import Tx, open_database
from coder.coderd.store.engine.migrate import wait_for_database
from coder.coderd.store.engine.postgres_cluster import cluster_of, find_account, make_folder, temporary_root
from coder.coderd.store.engine.postgres_process import spawn_options
from coder.coderd.store.site import site_settings
from tests.kit.agents.scripted_agent import eventually
from tests.kit.free_ports import free_port
from tests.kit.stand_ins.certificates import Authority

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
"""Debian's: a build from a Python package has no TLS."""
pytestmark = pytest.mark.skipif(not PROGRAMS, reason="needs a PostgreSQL with TLS (Debian: apt install postgresql)")
_RULES = """
hostssl all coder  all cert
hostssl all person all scram-sha-256
local   all all        trust
"""


@dataclass(frozen=True)
class TlsServer:
    port: int
    ca: str
    other_ca: str
    cert: str
    key: str
    sockets: Path
    authority: Authority
    data: Path
    process: subprocess.Popen[bytes]

    def serve(self, shift: timedelta) -> None:
        """Let new connections get a certificate that is valid around another day."""
        self.authority.shift = shift
        place_certificate(self.authority, self.data)
        self.process.send_signal(signal.SIGHUP)

    def url(self, login: str, **query: str) -> str:
        pairs = "&".join(f"{name}={value}" for name, value in query.items())
        return f"postgres://{login}@localhost:{self.port}/postgres?{pairs}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    folder, other = tmp_path_factory.mktemp("own"), tmp_path_factory.mktemp("other")
    authority, account = Authority(folder), find_account()
    with temporary_root(account) as root:
        cluster = cluster_of(Path(root), account)
        programs, port = PROGRAMS[-1], free_port()
        make_folder(cluster.data, account, 0o700)
        make_folder(cluster.sockets, account, 0o700)
        options = spawn_options(cluster)
        initdb = [str(programs / "initdb"), "-D", str(cluster.data), "-U", "coder", "--auth=trust", "--no-sync"]
        subprocess.run(initdb, check=True, capture_output=True, **options)
        place_certificate(authority, cluster.data)
        (cluster.data / "root.crt").write_bytes(Path(authority.file).read_bytes())
        make_owned(cluster.data / "root.crt", account)
        (cluster.data / "pg_hba.conf").write_text(_RULES)
        settings = {
            "listen_addresses": "localhost",
            "port": port,
            "ssl": "on",
            "ssl_ca_file": "root.crt",
            "unix_socket_directories": cluster.sockets,
            "fsync": "off",
        }
        given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        process = subprocess.Popen(
            [programs / "postgres", "-D", cluster.data, *given],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **options,
        )
        try:
            cert, key = authority.issue("coder")
            trio.run(make_person, f"postgresql://coder@/postgres?host={cluster.sockets}&port={port}")
            foreign = Authority(other).file
            yield TlsServer(port, authority.file, foreign, cert, key, cluster.sockets, authority, cluster.data, process)
        finally:
            process.terminate()
            process.wait()


def place_certificate(authority: Authority, data: Path) -> None:
    for name, source in zip(("server.crt", "server.key"), authority.issue("localhost"), strict=True):
        target = data / f"{name}.new"
        target.write_bytes(Path(source).read_bytes())
        target.chmod(0o600)
        make_owned(target, find_account())
        target.replace(data / name)


def make_owned(path: Path, account: Any) -> None:
    if account.switch:
        import os

        os.chown(path, account.uid, account.gid)


async def make_person(url: str) -> None:
    async def create(tx: Tx) -> None:
        await tx.execute(text("CREATE ROLE person LOGIN PASSWORD 'p@ss:w/rd'"))

    with trio.fail_after(60):
        while True:
            try:
                async with open_database(url) as database:
                    await database.run(create)
                return
            except DatabaseAwayError:
                await trio.sleep(0.05)  # it does not listen yet


async def ask(url: str, *statements: str) -> list[Any]:
    async def read(tx: Tx) -> list[Any]:
        return [(await tx.execute(text(statement))).scalar_one() for statement in statements]

    async with open_database(url) as database:
        try:
            result = await database.read(read)
        except DatabaseAwayError as error:
            raise error.reason from None
        async with database.listen("news"):  # a connection of its own, by the same parameters
            return result


USES_TLS = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
CLIENT = "SELECT client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


async def test_verified_client_certificate(server: TlsServer) -> None:
    files = {"sslrootcert": server.ca, "sslcert": server.cert, "sslkey": server.key}
    for mode in ("verify-full", "verify-ca", "require"):
        assert await ask(server.url("coder", sslmode=mode, **files), CLIENT) == ["/CN=coder"]
    assert await ask(server.url("coder", sslcert=server.cert, sslkey=server.key), CLIENT) == ["/CN=coder"]


async def test_password_with_at_sign(server: TlsServer) -> None:
    url = server.url(
        "person:p@ss:w/rd",
        sslmode="verify-full",
        sslrootcert=server.ca,
        application_name="coder@home",
        search_path="person",
        options="-c%20statement_timeout%3D7s",
        connect_timeout="10",
        keepalives_idle="30",
        tcp_user_timeout="9000",
        target_session_attrs="read-write",
    )
    shown = await ask(url, USES_TLS, "SHOW application_name", "SHOW search_path", "SHOW statement_timeout")
    assert shown == [True, "coder@home", "person", "7s"]


async def test_first_usable_host_is_taken(server: TlsServer) -> None:
    url = f"postgres://person:p%40ss:w%2Frd@localhost:{free_port()},localhost:{server.port}/postgres?sslmode=require"
    assert await ask(url, USES_TLS) == [True]


async def test_password_file_and_service(server: TlsServer, tmp_path: Path) -> None:
    passwords, services = tmp_path / "passwords", tmp_path / "services"
    passwords.write_text(f"localhost:{server.port}:postgres:person:p@ss\\:w/rd\n")
    passwords.chmod(0o600)
    services.write_text(
        f"[db]\nhost=localhost\nport={server.port}\ndbname=postgres\nuser=person\nsslmode=require\npassfile={passwords}\n"
    )
    assert await ask(f"service=db servicefile={services}", USES_TLS) == [True]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"sslmode": "disable"}, "no encryption"),
        ({"sslmode": "verify-full", "sslrootcert": "{other}"}, "certificate verify failed"),
        ({"sslmode": "verify-full"}, "certificate verify failed"),
    ],
)
async def test_untrusted_server_is_refused(server: TlsServer, query: dict[str, str], problem: str) -> None:
    filled = {name: value.format(other=server.other_ca) for name, value in query.items()}
    with pytest.raises(Exception, match=problem):
        await ask(server.url("person:p@ss:w/rd", **filled), USES_TLS)


async def test_expired_certificate_is_named(server: TlsServer) -> None:
    """Open connections go on, and a renewed certificate is accepted."""
    url = server.url("person:p@ss:w/rd", sslmode="verify-full", sslrootcert=server.ca)

    async def problem() -> str:
        try:
            async with open_database(url) as database:
                await wait_for_database(database)
        except CoderError as error:
            return error.message
        return ""

    async with open_database(url, pool_size=1) as database:
        await database.read(site_settings.ping)
        try:
            server.serve(-timedelta(days=3))
            message = await eventually(problem)
            assert message.startswith("the certificate of the PostgreSQL server at localhost:")
            assert message.endswith("is not accepted: certificate has expired")
            await database.read(site_settings.ping)
        finally:
            server.serve(timedelta())

        async def is_accepted() -> bool:
            return not await problem()

        await eventually(is_accepted)


async def test_replaced_authority_is_read(server: TlsServer, tmp_path: Path) -> None:
    """A server runs longer than its database's authority: a pool that was opened before verifies by the new one."""
    root = tmp_path / "root.pem"
    root.write_bytes(Path(server.ca).read_bytes())
    async with open_database(server.url("person:p@ss:w/rd", sslmode="verify-full", sslrootcert=str(root))) as database:
        await database.read(site_settings.ping)
        for file, is_trusted in ((server.other_ca, False), (server.ca, True)):
            (tmp_path / "new").write_bytes(Path(file).read_bytes())
            (tmp_path / "new").replace(root)
            await database.call(database.engine.dispose)
            if is_trusted:
                await database.read(site_settings.ping)
                continue
            with pytest.raises(DatabaseAwayError) as refused:
                await database.read(site_settings.ping)
            assert "certificate verify failed" in str(refused.value.reason)
