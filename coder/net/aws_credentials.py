"""Credentials of AWS from the standard sources, in the order of Amazon's SDKs.

Environment, web identity file (Kubernetes service accounts), shared credentials and configuration files, container
metadata (ECS, EKS pod identities), instance metadata (IMDSv2). Everything blocks: run it in a thread. Metadata is read
directly, never through a proxy, with timeouts of seconds: outside AWS those addresses answer nothing.
"""

from __future__ import annotations

import configparser
import json
import re
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

from coder.base.errors import CoderError
from coder.domain.foundation.web_addresses import split_untrusted
from coder.net.aws_signing import AwsCredentials
from coder.net.blocking_http import BadAnswerError, HttpConnection

METADATA_TIMEOUT = 2.0
_STS_TIMEOUT = 10.0
_EARLY = timedelta(minutes=5)
"""Temporary credentials are replaced so long before they expire."""
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"})
"""Hosts of container metadata over plain HTTP; all others need https."""
_ROLE = re.compile(r"[\w+=,.@/-]{1,128}")
_MAX_FILE = 64 << 10


@dataclass(frozen=True, slots=True)
class Environment:
    """What the sources read: variables, the clock, the home directory."""

    variables: Mapping[str, str]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    home: Path = Path("~")

    def get(self, name: str) -> str:
        return self.variables.get(name, "").strip()


class AwsCredentialSource:
    """Credentials, kept until five minutes before they expire. Threads may share it."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._kept: AwsCredentials | None = None

    def current(self) -> AwsCredentials:
        """Return valid credentials. Raises CoderError `no_aws_credentials`."""
        with self._lock:
            kept = self._kept
            if kept is None or _expires_soon(kept, self._environment.now()):
                self._kept = kept = find_credentials(self._environment)
            return kept


def find_credentials(environment: Environment) -> AwsCredentials:
    """Ask each source in turn. Raises CoderError `no_aws_credentials`, which names what each one said."""
    said = []
    for name, source in _SOURCES:
        try:
            found = source(environment)
        except (OSError, ValueError, KeyError, BadAnswerError, ElementTree.ParseError, configparser.Error) as error:
            said.append(f"{name}: {str(error) or type(error).__name__}")
            continue
        if found is not None:
            return found
        said.append(f"{name}: not configured")
    raise CoderError(
        "no_aws_credentials",
        f"no AWS credentials were found ({'; '.join(said)})",
        "Attach a role to the instance, task or service account, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    )


def find_region(environment: Environment, host: str) -> str:
    """Return the region of the environment, of the profile, or of the database's name; "" when none says it."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        if environment.get(name):
            return environment.get(name)
    region = _profile(environment).get("region", "")
    named = re.search(r"\.([a-z]{2}(?:-[a-z]+)+-\d)\.rds\.amazonaws\.com(?:\.cn)?$", host)
    return region or (named[1] if named else "")


def _of_environment(environment: Environment) -> AwsCredentials | None:
    key_id, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    if not key_id and not secret:
        return None
    if not key_id or not secret:
        raise ValueError("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together")
    return AwsCredentials(key_id, secret, environment.get("AWS_SESSION_TOKEN"))


def _of_web_identity(environment: Environment) -> AwsCredentials | None:
    """Exchange the token of a service account for a role (STS AssumeRoleWithWebIdentity, which needs no signature)."""
    profile = _profile(environment)
    path = environment.get("AWS_WEB_IDENTITY_TOKEN_FILE") or profile.get("web_identity_token_file", "")
    role = environment.get("AWS_ROLE_ARN") or profile.get("role_arn", "")
    if not path:
        return None
    if not role:
        raise ValueError("AWS_ROLE_ARN is not set")
    region = find_region(environment, "")
    endpoint = environment.get("AWS_ENDPOINT_URL_STS") or (
        f"https://sts.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
        if region
        else "https://sts.amazonaws.com"
    )
    form = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": role,
        "RoleSessionName": environment.get("AWS_ROLE_SESSION_NAME") or "coder",
        "WebIdentityToken": _read(environment, path).strip(),
    }
    body = _request("POST", endpoint, "/", _STS_TIMEOUT, {_CONTENT: _FORM}, urlencode(form).encode())
    tree = ElementTree.fromstring(_plain_xml(body))  # noqa: S314 - without declarations of entities, see _plain_xml
    found = {part.tag.rpartition("}")[2]: (part.text or "").strip() for part in tree.iter()}
    return AwsCredentials(
        found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"], _moment(found["Expiration"])
    )


def _of_files(environment: Environment) -> AwsCredentials | None:
    profile = _profile(environment)
    if profile.get("aws_access_key_id") and profile.get("aws_secret_access_key"):
        return AwsCredentials(
            profile["aws_access_key_id"], profile["aws_secret_access_key"], profile.get("aws_session_token", "")
        )
    for name in ("credential_process", "sso_session", "sso_start_url", "source_profile", "credential_source"):
        if profile.get(name):
            raise ValueError(f"the profile's {name} is not supported; write keys into the file or use a role")
    if environment.get("AWS_PROFILE"):
        raise ValueError(f"the profile {environment.get('AWS_PROFILE')} has no keys")
    return None


def _of_container(environment: Environment) -> AwsCredentials | None:
    relative = environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    full = environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if not relative and not full:
        return None
    url = f"http://169.254.170.2{relative}" if relative else full
    parts = split_untrusted(url)
    if parts.scheme != "https" and (parts.hostname or "") not in _LOCAL_HOSTS:
        raise ValueError(f"{parts.hostname} is neither local nor https")
    path = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
    token = _read(environment, path).strip() if path else environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
    if not token.isprintable():
        raise ValueError("the authorization token is not one line")
    base, target = f"{parts.scheme}://{parts.netloc}", f"{parts.path}{'?' if parts.query else ''}{parts.query}"
    return _of_document(_request("GET", base, target, METADATA_TIMEOUT, {"Authorization": token} if token else {}))


def _of_instance(environment: Environment) -> AwsCredentials | None:
    if environment.get("AWS_EC2_METADATA_DISABLED").lower() == "true":
        return None
    base = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or "http://169.254.169.254"
    token = _request(
        "PUT", base, "/latest/api/token", METADATA_TIMEOUT, {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
    )
    fields = {"X-aws-ec2-metadata-token": token.decode("ascii").strip()}
    folder = "/latest/meta-data/iam/security-credentials/"
    lines = _request("GET", base, folder, METADATA_TIMEOUT, fields).decode("ascii").split()
    if not lines or not _ROLE.fullmatch(lines[0]):
        raise ValueError("the instance has no role")
    return _of_document(_request("GET", base, folder + lines[0], METADATA_TIMEOUT, fields))


_SOURCES: tuple[tuple[str, Callable[[Environment], AwsCredentials | None]], ...] = (
    ("environment", _of_environment),
    ("web identity", _of_web_identity),
    ("shared files", _of_files),
    ("container metadata", _of_container),
    ("instance metadata", _of_instance),
)
_CONTENT, _FORM = "Content-Type", "application/x-www-form-urlencoded"


def _of_document(raw: bytes) -> AwsCredentials:
    document: Any = json.loads(raw)
    if not isinstance(document, dict) or document.get("Code", "Success") != "Success":
        raise ValueError("the metadata service has no credentials")
    return AwsCredentials(
        str(document["AccessKeyId"]),
        str(document["SecretAccessKey"]),
        str(document.get("Token") or ""),
        _moment(str(document["Expiration"])) if document.get("Expiration") else None,
    )


def _profile(environment: Environment) -> dict[str, str]:
    """Return the active profile: of the configuration file, then of the credentials file, which wins."""
    name = environment.get("AWS_PROFILE") or "default"
    result: dict[str, str] = {}
    for variable, default, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name),
    ):
        path = _path(environment, environment.get(variable) or default)
        if path.is_file():
            parser = configparser.ConfigParser(interpolation=None, default_section="\0none", strict=False)
            parser.read_string(_read(environment, str(path)))
            result |= dict(parser[section]) if parser.has_section(section) else {}
    return result


def _path(environment: Environment, text: str) -> Path:
    return environment.home.expanduser() / text[2:] if text.startswith("~/") else Path(text)


def _read(environment: Environment, text: str) -> str:
    with _path(environment, text).open(encoding="utf-8") as file:
        return file.read(_MAX_FILE)


def _request(
    method: str, base: str, target: str, timeout: float, fields: Mapping[str, str], body: bytes | None = None
) -> bytes:
    """Return the body of a 200. Raises OSError, ValueError, BadAnswerError."""
    parts = split_untrusted(base)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{base!r} is no address")
    is_tls = parts.scheme == "https"
    connection = HttpConnection(
        (parts.hostname, parts.port or (443 if is_tls else 80)),
        timeout=timeout,
        tls=ssl.create_default_context if is_tls else None,
        server_name=parts.hostname,
    )
    try:
        status, _, content, _ = connection.exchange(method, target or "/", {"Host": parts.netloc, **fields}, body)
    finally:
        connection.close()
    if status != 200:
        raise ValueError(f"{parts.hostname} answered {status}")
    return content


def _plain_xml(raw: bytes) -> bytes:
    if b"<!" in raw:
        raise ValueError("the answer declares entities")
    return raw


def _expires_soon(credentials: AwsCredentials, now: datetime) -> bool:
    return credentials.expires_at is not None and credentials.expires_at - now < _EARLY


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
