"""Connection strings of PostgreSQL: every parameter is understood or refused by name."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from coder.base.errors import CoderError
from coder.coderd.store.engine import connection_string
from coder.coderd.store.engine.connection_string import parse_connection_string
from coder.coderd.store.engine.connection_tls import FILES
from tests.kit.stand_ins.certificates import Authority

PLAIN = {"user": "u", "password": "p", "host": ["h"], "port": 5432, "database": "db"}

LIBPQ = """host hostaddr port dbname user password passfile require_auth channel_binding connect_timeout client_encoding
options application_name fallback_application_name keepalives keepalives_idle keepalives_interval keepalives_count
tcp_user_timeout replication gssencmode sslmode sslnegotiation sslcompression sslcert sslkey sslpassword sslcertmode
sslrootcert sslcrl sslcrldir sslsni requirepeer ssl_min_protocol_version ssl_max_protocol_version krbsrvname gsslib
gssdelegation service target_session_attrs load_balance_hosts""".split()
"""Parameters of PostgreSQL 17's libpq, as its manual lists them."""


def arguments(text: str, **environment: str) -> dict[str, Any]:
    return parse_connection_string(text, environment).arguments()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgres://u:p@h:5432/db", PLAIN),
        ("postgresql://u:p@h:5432/db?", PLAIN),
        ("POSTGRES://u:p@h:5432/db", PLAIN),
        ("host=h port=5432 user=u password=p dbname=db", PLAIN),
        ("host = 'h' port=5432 user=u password='p' dbname=db", PLAIN),
        ("postgres://h?user=u&password=p&port=5432&dbname=db", PLAIN),
        ("postgres://u@/db?host=/run/pg", {"user": "u", "host": ["/run/pg"], "database": "db"}),
        ("postgres://%2Frun%2Fpg/db", {"host": ["/run/pg"], "database": "db"}),
        ("postgres://", {}),
        ("postgres:///db", {"database": "db"}),
        ("postgres://a:1,b:2/db", {"host": ["a", "b"], "port": [1, 2], "database": "db"}),
        ("postgres://a,b:2/db", {"host": ["a", "b"], "port": [5432, 2], "database": "db"}),
        ("postgres://[::1]:1,[fe80::2]/db", {"host": ["::1", "fe80::2"], "port": [1, 5432], "database": "db"}),
        ("host=a,b port=1 dbname=db", {"host": ["a", "b"], "port": 1, "database": "db"}),
    ],
)
def test_both_forms_are_read(text: str, expected: dict[str, Any]) -> None:
    assert arguments(text) == expected


PASSWORDS = ["p@ss", "a:b@c", "a@b?c", "a?b", "a#b", "a%b", "a$b", "a/b", "a b", "a&b=c", "ä", "@", "a@b/c", "p%40ss"]


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("query", ["", "?sslmode=disable", "?application_name=a@b&sslmode=disable"])
def test_any_password_is_kept(password: str, query: str) -> None:
    result = arguments(f"postgres://u:{password}@127.0.0.1:5432/db{query}")
    expected = "p@ss" if password == "p%40ss" else password
    assert (result["user"], result["password"]) == ("u", expected)
    assert (result["host"], result["port"], result["database"]) == (["127.0.0.1"], 5432, "db")
    assert result.get("ssl") == ("disable" if query else None)


def test_conninfo_quotes_are_read() -> None:
    result = arguments(r"user=u password='it\'s \\ here' dbname = a\ b")
    assert (result["password"], result["database"]) == (r"it's \ here", "a b")


def test_at_sign_without_login() -> None:
    result = arguments("postgres://h/db?application_name=a@b")
    assert (result["host"], result["server_settings"]) == (["h"], {"application_name": "a@b"})


def test_session_settings_are_passed() -> None:
    text = "postgres://h/db?application_name=coder&search_path=a%2Cb&options=-c%20geqo%3Doff&statement_timeout=5s"
    assert arguments(text)["server_settings"] == {"application_name": "coder", "options": "-c geqo=off"}
    assert parse_connection_string(text).session_settings() == {"search_path": "a,b", "statement_timeout": "5s"}
    assert arguments("postgres://h/db?fallback_application_name=x")["server_settings"] == {"application_name": "x"}
    assert arguments("postgres://h/db?connect_timeout=1")["timeout"] == 2
    assert "timeout" not in arguments("postgres://h/db?connect_timeout=0")
    assert arguments("postgres://h/db?target_session_attrs=read-write")["target_session_attrs"] == "read-write"
    parsed = parse_connection_string("postgres://h/db?keepalives_idle=30&tcp_user_timeout=5000")
    assert parsed.socket_options() == {"keepalives_idle": 30, "tcp_user_timeout": 5000}


def test_every_parameter_has_a_rule() -> None:
    known = connection_string._LOGIN | connection_string.PASSED | FILES | set(connection_string.SOCKET)
    known |= connection_string._WITHOUT_EFFECT.keys() | connection_string._REFUSED.keys()
    known |= {"sslmode", "sslnegotiation", "connect_timeout", "fallback_application_name"}
    assert set(LIBPQ) - known == {"options", "application_name"}, "session settings"


@pytest.mark.parametrize("name", [*sorted(connection_string._REFUSED), "pool_max_conn_lifetime"])
def test_refused_parameters_are_named(name: str) -> None:
    with pytest.raises(CoderError) as caught:
        arguments(f"postgres://u:secret@h/db?{name}=1")
    assert f"the parameter {name} is not supported" in str(caught.value) and "secret" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "query",
    [
        "sslmode=always",
        "target_session_attrs=any-of",
        "connect_timeout=soon",
        "keepalives_idle=x",
        "gssencmode=require",
        "channel_binding=require",
        "client_encoding=latin1",
        "port=99999",
        "port=x",
        "host=a,b,c&port=1,2",
        "sslmode=verify-full&sslrootcert=/nowhere.pem",
        "sslmode=require&sslcert=/nowhere.pem",
        "sslcert=/nowhere.pem",
        "sslmode=prefer&sslcert=/etc/hostname&sslkey=/etc/hostname",
        "sslmode=allow&sslcert=/etc/hostname",
        "sslmode=require&ssl_min_protocol_version=SSLv3",
        "service=none",
    ],
)
def test_unusable_values_are_refused(query: str) -> None:
    with pytest.raises(CoderError) as caught:
        arguments(f"postgres://u:secret@/db?{query}", PGSERVICEFILE="/nowhere")
    assert caught.value.code == "bad_database_url" and caught.value.hint
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("mark", ['"', "'"])
def test_quotation_marks_are_named(mark: str) -> None:
    """`docker --env-file` gives them to the program."""
    with pytest.raises(CoderError, match="has quotation marks around it") as caught:
        arguments(f"{mark}postgres://u:secret@h/db{mark}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "nonsense", "mysql://h/db", "postgres://[::1/db", "host=", "http://h?a=b", "=x"])
def test_other_texts_are_refused(text: str) -> None:
    try:
        assert arguments(text) == {}, "host= alone is an empty value"
    except CoderError as error:
        assert error.code == "bad_database_url"
    else:
        assert text == "host="


def test_service_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "services"
    file.write_text("[other]\nhost=x\n[prod]\nhost=h\nport=5433\ndbname=db\nuser=u%1\nsslmode=disable\n")
    result = arguments("postgres://?service=prod&user=me", PGSERVICEFILE=str(file))
    assert result == {"host": ["h"], "port": 5433, "database": "db", "user": "me", "ssl": "disable"}
    assert arguments("host=y", PGSERVICE="other", PGSERVICEFILE=str(file))["host"] == ["y"]
    named = arguments(f"service=prod servicefile={file}")
    assert named["user"] == "u%1"


@pytest.mark.parametrize(
    ("query", "verify", "names"),
    [
        ("sslmode=require", ssl.CERT_NONE, False),
        ("sslmode=require&sslrootcert={ca}", ssl.CERT_REQUIRED, False),
        ("sslmode=verify-ca&sslrootcert={ca}", ssl.CERT_REQUIRED, False),
        ("sslmode=verify-full&sslrootcert={ca}", ssl.CERT_REQUIRED, True),
        ("sslmode=verify-full", ssl.CERT_REQUIRED, True),
        ("sslrootcert=system", ssl.CERT_REQUIRED, True),
        ("sslmode=require&sslcert={cert}&sslkey={key}", ssl.CERT_NONE, False),
    ],
)
def test_tls_modes(tmp_path: Path, query: str, verify: ssl.VerifyMode, names: bool) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.issue("client")
    context = arguments("postgres://h/db?" + query.format(ca=authority.file, cert=cert, key=key))["ssl"].get()
    assert (context.verify_mode, context.check_hostname) == (verify, names)


def test_tls_that_the_server_decides(tmp_path: Path) -> None:
    cert, key = Authority(tmp_path).issue("client")
    result = arguments(f"postgres://h/db?sslcert={cert}&sslkey={key}")
    assert result["ssl"] == "prefer" and "sslcert=" in result["dsn"] and "h" not in result["dsn"].partition("?")[0][10:]
    assert arguments("postgres://h/db?sslmode=prefer") == {"host": ["h"], "database": "db", "ssl": "prefer"}
    assert arguments("postgres://h/db?sslmode=require&sslnegotiation=direct")["direct_tls"] is True
