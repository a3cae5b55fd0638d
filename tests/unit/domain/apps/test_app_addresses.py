"""Addresses of applications and the headers they pass."""

from __future__ import annotations

import pytest

from coder.domain.apps import app_headers
from coder.domain.apps.app_addresses import (
    AppRequest,
    HostPattern,
    PortApp,
    explain_wildcard,
    frame_source,
    label_user,
    parse_app_label,
    parse_app_path,
    parse_port,
)


@pytest.mark.parametrize(
    ("path", "user", "workspace", "agent", "app", "rest"),
    [
        ("/@al/ws/apps/web/", "al", "ws", "", "web", "/"),
        ("/@al/ws/apps/web", "al", "ws", "", "web", ""),
        ("/%40al/ws.main/apps/web/a%20b", "al", "ws", "main", "web", "/a%20b"),
        ("/@al/ws/apps/web/apps/x", "al", "ws", "", "web", "/apps/x"),
    ],
)
def test_paths(path: str, user: str, workspace: str, agent: str, app: str, rest: str) -> None:
    result = parse_app_path(path)
    assert result is not None
    location = f"{workspace}.{agent}" if agent else workspace
    assert result == (AppRequest("path", f"/@{user}/{location}/apps/{app}/", user, workspace, agent, app), rest)
    assert result[0].port is None


@pytest.mark.parametrize(
    "path", ["/@al/ws/terminal", "/@al/ws", "/al/ws/apps/web/", "/@al/apps/web/", "/api/@al/ws/apps/x"]
)
def test_other_paths_are_the_dashboards(path: str) -> None:
    assert parse_app_path(path) is None


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("web--ws--al", ("", "web", "", "ws", "al")),
        ("web--main--ws--al", ("", "web", "main", "ws", "al")),
        ("8080--main--my-ws--al-b", ("", "8080", "main", "my-ws", "al-b")),
        ("pre---web--ws--al", ("pre---", "web", "", "ws", "al")),
        ("a--b", None),
        ("web--ws--al--x--y", None),
        ("-web--ws--al", None),
        ("a" * 50 + "--workspace--user", None),
    ],
)
def test_labels(label: str, expected: tuple[str, ...] | None) -> None:
    result = parse_app_label(label)
    if expected is None:
        assert result is None
        return
    assert result is not None
    assert (
        result.app_prefix,
        result.app_slug_or_port,
        result.agent_name_or_id,
        result.workspace_name_or_id,
        result.username_or_id,
    ) == expected


def test_ports() -> None:
    assert parse_port("8443s") == PortApp(8443, True)
    assert PortApp(8443, True).url == "https://127.0.0.1:8443"
    assert [parse_port(text) for text in ("80", "123456", "70000", "8080x", "s8080")] == [None] * 5
    with_agent, without = parse_app_label("8080--main--ws--al"), parse_app_label("8080--ws--al")
    assert with_agent is not None
    assert with_agent.port == PortApp(8080, False)
    assert without is not None
    assert without.port is None  # a slug of digits


def test_hosts() -> None:
    dots, dashes = HostPattern("*.apps.example.com"), HostPattern("*--apps.example.com:8443")
    assert dots.label_of("web--ws--al.apps.example.com:3000") == "web--ws--al"
    assert dots.label_of("WEB--ws--al.Apps.example.com") == "web--ws--al"
    assert dashes.label_of("web--ws--al--apps.example.com") == "web--ws--al"
    for other in (
        "apps.example.com",
        "a.b.apps.example.com",
        "evil.com",
        "x.apps.example.com.evil.com",
        "[::1]:80",
        "",
    ):
        assert dots.label_of(other) is None, other
    assert dots.with_port("http://coder.example.com:7232") == "*.apps.example.com:7232"
    assert dots.with_port("https://coder.example.com") == "*.apps.example.com"
    assert dashes.with_port("http://coder.example.com:7232") == "*--apps.example.com:8443"
    assert HostPattern("").with_port("http://x:1") == ""
    assert frame_source("*--apps.example.com") == "*.example.com"
    assert frame_source("*.apps.example.com:1") == "*.apps.example.com:1"
    assert label_user(dots, "https://web--ws--al.apps.example.com") == "al"
    assert label_user(dots, "https://evil.com") == ""


@pytest.mark.parametrize(
    "pattern", ["https://*.a.b", "*.a.b/x", "a.*.b", "*.*.b", "*", "*.", "apps.example.com", "*.a b.c"]
)
def test_unusable_patterns(pattern: str) -> None:
    assert explain_wildcard(pattern)


@pytest.mark.parametrize("pattern", ["", "*.apps.example.com", "*--apps.example.com", "*.localhost.test:3000"])
def test_usable_patterns(pattern: str) -> None:
    assert explain_wildcard(pattern) == ""


def _sent(headers: list[tuple[bytes, bytes]], *, dashboard: bool = True) -> dict[bytes, bytes]:
    sent = app_headers.to_app(
        headers, remote_ip="10.0.0.1", scheme="https", dashboard_origin=dashboard, credential="tok-en"
    )
    return {name.lower(): value for name, value in sent}


def test_our_headers_stay_out_of_applications() -> None:
    sent = _sent(
        [
            (b"host", b"x"),
            (b"cookie", b"a=1; coder_session_token=t; coder_signed_app_token=j; csrf_token=c"),
            (b"cookie", b"coder_subdomain_app_session_token_ff=k; oauth_state=s; b=2"),
            (b"cookie", b"oauth_pkce_verifier=v; coder_oauth_convert_jwt=j"),
            (b"coder-session-token", b"t"),
            (b"authorization", b"Bearer tok-en"),
            (b"connection", b"keep-alive, x-private"),
            (b"x-private", b"1"),
            (b"x-forwarded-for", b"1.2.3.4"),
            (b"transfer-encoding", b"chunked"),
            (b"content-length", b"5"),
        ]
    )
    assert sent[b"cookie"] == b"a=1; b=2"
    assert sent[b"x-forwarded-for"] == b"1.2.3.4, 10.0.0.1"
    assert sent[b"x-forwarded-proto"] == b"https"
    assert sent[b"transfer-encoding"] == b"chunked"
    for name in (b"authorization", b"coder-session-token", b"x-private", b"content-length", b"connection"):
        assert name not in sent
    kept = _sent([(b"cookie", b"csrf_token=c"), (b"authorization", b"Basic abc")], dashboard=False)
    assert (kept[b"cookie"], kept[b"authorization"]) == (b"csrf_token=c", b"Basic abc")


@pytest.mark.parametrize("chunked", [False, True])
def test_destination_and_framing_headers_are_kept(chunked: bool) -> None:
    """Without its length a body would be read as another request."""
    headers = [(b"host", b"x"), (b"content-length", b"5"), (b"connection", b"Host, Content-Length, transfer-encoding")]
    headers += [(b"transfer-encoding", b"chunked")] * chunked
    sent = _sent(headers)
    assert sent[b"host"] == b"x"
    assert (b"content-length" in sent, b"transfer-encoding" in sent) == (not chunked, chunked)
    answered = dict(app_headers.from_app(headers, base_path="/", cors=None))
    assert (b"content-length" in answered) is not chunked and b"transfer-encoding" not in answered


def test_upgrade_headers_keep_usual_spelling() -> None:
    headers = [(b"connection", b"Upgrade"), (b"upgrade", b"websocket"), (b"sec-websocket-key", b"k")]
    sent = app_headers.to_app(headers, remote_ip="", scheme="http", dashboard_origin=False, credential="")
    assert (b"Sec-WebSocket-Key", b"k") in sent
    assert (b"Connection", b"Upgrade") in sent


@pytest.mark.parametrize(
    ("given", "by_path", "by_host"),
    [
        (b"a=1", b"a=1; Path=/@u/w/apps/s/", b"a=1"),
        (b"a=1; Path=/; HttpOnly; Domain=.example.com", b"a=1; Path=/@u/w/apps/s/; HttpOnly", b"a=1; Path=/; HttpOnly"),
        (b"a=1; path=/@u/w/apps/s/in", b"a=1; Path=/@u/w/apps/s/in", b"a=1; path=/@u/w/apps/s/in"),
        (b"coder_session_token=x; Path=/", None, None),
        (b"csrf_token=x", None, b"csrf_token=x"),
        (b"=coder_session_token=x; Path=/", None, None),
    ],
)
def test_cookies_stay_with_their_application(given: bytes, by_path: bytes | None, by_host: bytes | None) -> None:
    for base, expected in (("/@u/w/apps/s/", by_path), ("/", by_host)):
        sent = app_headers.from_app([(b"set-cookie", given)], base_path=base, cors=[])
        assert sent == ([(b"set-cookie", expected)] if expected else [])


def test_responses_lose_origin_wide_headers() -> None:
    headers = [
        (b"access-control-allow-origin", b"*"),
        (b"vary", b"Accept, Origin"),
        (b"service-worker-allowed", b"/"),
        (b"clear-site-data", b'"*"'),
        (b"secure-session-registration", b'(ES256);path="/x"'),
        (b"set-login", b"logged-out"),
        (b"use-as-dictionary", b'match="/*"'),
        (b"content-type", b"text/html"),
    ]
    by_path = app_headers.from_app(headers, base_path="/@u/w/apps/s/", cors=[])
    assert by_path == [(b"vary", b"Accept"), (b"content-type", b"text/html")]
    assert app_headers.from_app(headers, base_path="/", cors=None) == headers


def test_queries_lose_only_our_parameters() -> None:
    assert app_headers.stripped_query("a=%20b&c") == "a=%20b&c"
    assert app_headers.stripped_query("a=1&coder_session_token=t") == "a=1"
    assert app_headers.stripped_query("a=1&coder%5Fsession_token=t&acc%65ss_token=tok-en", "tok-en") == "a=1"
    assert app_headers.stripped_query("access_token=mine") == "access_token=mine"
    assert app_headers.stripped_query("access_token=tok-en&b=2", "tok-en") == "b=2"


NO_PORTS = (
    "0",
    "00000",
    "1",
    "79",
    "999",
    "65536",
    "65536s",
    "99999",
    "999999",
    "-8080",
    "+8080",
    "8080.",
    "8080.0",
    "8_080",
    "8080S",
    "0x1f90",
    "8080ss",
    "s",
    "",
    "08",
    "8080\n",
    " 8080",
    "\u0668\u0660\u0668\u0660",
    "\uff18\uff10\uff18\uff10",
)
NO_LABELS = (
    "web--ws",
    "web",
    "",
    "-",
    "--",
    "---",
    "----",
    "web--ws--",
    "--web--ws--al",
    "web---ws--al--",
    "web--ws--al-",
    "-web--ws--al",
    "web--main--ws--al--x",
    "web--main--ws--al--x--y",
    "web--ws--al\n",
    "web--ws--*",
    "web--ws--%61l",
    "web--ws--al/../x",
    "web--ws--\u0430l",
    "w\u00e9b--ws--al",
    "web--ws--al@evil",
    "web--ws--al:80",
    "web--ws--a_l",
    "web -- ws -- al",
    "web--ws--" + "a" * 60,
    "web--ws--al\x00",
    "web\u2013\u2013ws\u2013\u2013al",
    "web--ws--al.",
)
NOT_BELOW = (
    # hosts that resemble *.apps.example.com without matching it
    "apps.example.com",
    ".apps.example.com",
    "web--ws--alapps.example.com",
    "web--ws--al.apps.example.com.evil.com",
    "web--ws--al.apps.example.comx",
    "web--ws--al.apps.examp1e.com",
    "web--ws--al.x.apps.example.com",
    "web--ws--al..apps.example.com",
    "web--ws--al.apps..example.com",
    "web--ws--al.apps.example.com:x",
    "web--ws--al.apps.example.com:",
    "web--ws--al.apps.example.com:80:80",
    "web--ws--al.apps.example.com/",
    "web--ws--al.apps.example.com#",
    "web--ws--al@apps.example.com",
    "x@web--ws--al.apps.example.com",
    "web--ws--al.apps.example.com@evil.com",
    "web--ws--al.apps.example\u3002com",
    "web--ws--al.\u0430pps.example.com",
    "web--ws--\u0430l.apps.example.com",
    "web--ws--al\u3002apps.example.com",
    "w_b--ws--al.apps.example.com",
    "web--ws--al .apps.example.com",
    "web--ws--al\t.apps.example.com",
    "web--ws--al%2eapps.example.com",
    "[web--ws--al.apps.example.com]",
    "web--ws--al.apps.example.com,evil.com",
    "web--ws--al.apps.example.com evil.com",
)


def test_invalid_port_is_none() -> None:
    assert [text for text in NO_PORTS if parse_port(text) is not None] == []
    assert parse_port("65535") == PortApp(65535, False)


def test_invalid_label_names_no_application() -> None:
    assert [text for text in NO_LABELS if parse_app_label(text) is not None] == []


def test_foreign_hosts_do_not_match() -> None:
    pattern = HostPattern("*.apps.example.com")
    assert [host for host in NOT_BELOW if pattern.label_of(host) is not None] == []
    # A trailing dot, capitals and punycode give the same host or another label, never another host.
    for host, label in (
        ("web--ws--al.apps.example.com.", "web--ws--al"),
        ("WEB--WS--AL.APPS.EXAMPLE.COM", "web--ws--al"),
        ("web--ws--al.apps.example.com.:8080", "web--ws--al"),
        ("xn--ws--al.apps.example.com", "xn--ws--al"),
    ):
        assert pattern.label_of(host) == label
