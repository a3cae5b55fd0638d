"""Sources of AWS credentials: each in turn, against a metadata server of this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from coder.base.errors import CoderError
from coder.net.aws_credentials import AwsCredentialSource, Environment, find_credentials, find_region

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OFF = {"AWS_EC2_METADATA_DISABLED": "true"}
STS = (
    '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
    "<AssumeRoleWithWebIdentityResult><Credentials><SessionToken>web-token</SessionToken>"
    "<SecretAccessKey>web-secret</SecretAccessKey><Expiration>2026-01-01T01:00:00Z</Expiration>"
    "<AccessKeyId>WEB</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
)


class Metadata(BaseHTTPRequestHandler):
    """IMDSv2, container metadata and STS of a made-up role."""

    seen: list[str]
    expiration: str

    def do_PUT(self) -> None:
        self._answer("imds-token" if self.headers.get("X-aws-ec2-metadata-token-ttl-seconds") else None)

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        is_known = form["WebIdentityToken"] == ["jwt"] and form["RoleArn"] == ["arn:aws:iam::1:role/coder"]
        self._answer(STS if is_known and form["Action"] == ["AssumeRoleWithWebIdentity"] else None)

    def do_GET(self) -> None:
        folder = "/latest/meta-data/iam/security-credentials/"
        if self.path.startswith("/latest") and self.headers.get("X-aws-ec2-metadata-token") != "imds-token":
            self._answer(None)
        elif self.path == "/container?x=1":
            self._answer(self._keys("TASK") if self.headers.get("Authorization") == "pod-token" else None)
        else:
            self._answer({folder: "the-role\n", f"{folder}the-role": self._keys("INSTANCE")}.get(self.path))

    def _keys(self, key_id: str) -> str:
        keys = {"AccessKeyId": key_id, "SecretAccessKey": "s", "Token": "t", "Expiration": self.expiration}
        return json.dumps(keys)

    def _answer(self, text: str | None) -> None:
        self.seen.append(f"{self.command} {self.path}")
        body = (text or "").encode()
        self.send_response(403 if text is None else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def metadata_server(expiration: str = "2026-01-01T06:00:00Z") -> Iterator[tuple[str, list[str]]]:
    handler = type("Handler", (Metadata,), {"seen": [], "expiration": expiration})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler.seen  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def environment(home: Path, **variables: str) -> Environment:
    return Environment(variables, lambda: NOW, home)


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("variables", "key_id"),
    [
        ({"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}, "ENV"),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "{home}/jwt", "AWS_ROLE_ARN": "arn:aws:iam::1:role/coder"}, "WEB"),
        ({"AWS_PROFILE": "web"}, "WEB"),
        ({}, "DEFAULT"),
        ({"AWS_PROFILE": "work"}, "WORK"),
        ({"AWS_SHARED_CREDENTIALS_FILE": "{home}/other"}, "OTHER"),
    ],
)
def test_source_in_order(variables: dict[str, str], key_id: str, tmp_path: Path) -> None:
    keys = "aws_access_key_id = {}\naws_secret_access_key = s\n"
    write(tmp_path / "jwt", "jwt\n")
    write(tmp_path / "other", f"[default]\n{keys.format('OTHER')}")
    write(tmp_path / ".aws/credentials", f"[default]\n{keys.format('DEFAULT')}[work]\n{keys.format('WORK')}")
    role = f"role_arn = arn:aws:iam::1:role/coder\nweb_identity_token_file = {tmp_path}/jwt\n"
    write(tmp_path / ".aws/config", f"[default]\nregion = eu-west-1\n[profile web]\n{role}")
    given = {name: value.format(home=tmp_path) for name, value in variables.items()}
    with metadata_server() as (url, _):
        found = find_credentials(environment(tmp_path, AWS_ENDPOINT_URL_STS=url, **OFF, **given))
    assert found.key_id == key_id


@pytest.mark.parametrize("with_file", [True, False])
def test_container_metadata(with_file: bool, tmp_path: Path) -> None:
    token = write(tmp_path / "token", "pod-token\n")
    variable = "AWS_CONTAINER_AUTHORIZATION_TOKEN"
    variables = {f"{variable}_FILE": token} if with_file else {variable: "pod-token"}
    with metadata_server() as (url, _):
        variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = f"{url}/container?x=1"
        assert find_credentials(environment(tmp_path, **OFF, **variables)).key_id == "TASK"


def test_instance_metadata_needs_its_token(tmp_path: Path) -> None:
    with metadata_server() as (url, seen):
        found = find_credentials(environment(tmp_path, AWS_EC2_METADATA_SERVICE_ENDPOINT=url))
    assert (found.key_id, found.token) == ("INSTANCE", "t") and seen[0] == "PUT /latest/api/token"


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({}, "environment: not configured"),
        ({"AWS_ACCESS_KEY_ID": "x"}, "belong together"),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere", "AWS_ROLE_ARN": "r"}, "web identity: .*No such file"),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere"}, "AWS_ROLE_ARN is not set"),
        ({"AWS_PROFILE": "none"}, "the profile none has no keys"),
        ({"AWS_PROFILE": "sso"}, "sso_session is not supported"),
        ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://evil.example/"}, "neither local nor https"),
        ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/x"}, "container metadata: "),
    ],
)
def test_nothing_found_is_explained(variables: dict[str, str], reason: str, tmp_path: Path) -> None:
    write(tmp_path / ".aws/config", "[profile sso]\nsso_session = s\n")
    with pytest.raises(CoderError, match=reason) as refused:
        find_credentials(environment(tmp_path, **OFF, **variables))
    assert refused.value.code == "no_aws_credentials"


def test_temporary_keys_are_renewed_early(tmp_path: Path) -> None:
    moment = NOW
    with metadata_server("2026-01-01T00:20:00Z") as (url, seen):
        variables = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": url}
        source = AwsCredentialSource(Environment(variables, lambda: moment, tmp_path))
        for minute in (0, 10, 14):
            moment = NOW + timedelta(minutes=minute)
            source.current()
        assert len(seen) == 3  # token, role, keys: once
        moment = NOW + timedelta(minutes=16)
        source.current()
    assert len(seen) == 6


@pytest.mark.parametrize(
    ("variables", "host", "region"),
    [
        ({"AWS_REGION": "eu-north-1", "AWS_DEFAULT_REGION": "x"}, "h", "eu-north-1"),
        ({"AWS_DEFAULT_REGION": "eu-north-1"}, "h", "eu-north-1"),
        ({"AWS_PROFILE": "p"}, "h", "eu-west-3"),
        ({}, "db.abc.ap-southeast-2.rds.amazonaws.com", "ap-southeast-2"),
        ({}, "db.abc.us-gov-west-1.rds.amazonaws.com", "us-gov-west-1"),
        ({}, "db.abc.cn-north-1.rds.amazonaws.com.cn", "cn-north-1"),
        ({}, "db.example.com", ""),
    ],
)
def test_region(variables: dict[str, str], host: str, region: str, tmp_path: Path) -> None:
    write(tmp_path / ".aws/config", "[profile p]\nregion = eu-west-3\n")
    assert find_region(environment(tmp_path, **variables), host) == region
