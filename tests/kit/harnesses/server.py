"""Harnesses of the server."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from coder.api.base.refusals import BadGateway
from coder.base.errors import CoderError
from tests.kit.harnesses.parts import Call, Harness, _tar, _text


def _signed_message(data: bytes) -> object:
    from coder.coderd.services.agents.signed_message import open_untrusted

    return open_untrusted(data)


def _certificate(data: bytes) -> object:
    from coder.coderd.services.agents.signed_message import certificate_untrusted

    return certificate_untrusted(data)


def _vitals(text: str) -> object:
    from coder.coderd.services.agents.agent_api.vitals_calls import _read_untrusted

    return _read_untrusted(text)


def _message_refused() -> type[Exception]:
    from coder.coderd.services.agents.signed_message import MessageRefused

    return MessageRefused


def _signed_sample() -> bytes:
    """Return a signature of a few words."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import pkcs7

    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "metadata.azure.com")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    builder = pkcs7.PKCS7SignatureBuilder().set_data(b"{}").add_signer(certificate, key, hashes.SHA256())
    return builder.sign(serialization.Encoding.DER, [pkcs7.PKCS7Options.Binary])


def _sample_certificate() -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs7

    return pkcs7.load_der_pkcs7_certificates(_signed_sample())[0].public_bytes(Encoding.DER)


def _agent_uuid(data: bytes) -> object:
    from coder.coderd.services.agents.agent_api.message_fields import uuid_untrusted

    return uuid_untrusted(data)


def _agent_address(text: str) -> object:
    from coder.coderd.services.agents.agent_api.message_fields import address_untrusted

    return address_untrusted(text)


def _safe_name(text: str) -> object:
    from coder.coderd.services.templates import archives

    try:
        return archives.safe_name_untrusted(text)
    except archives.ArchiveError:
        return None


def _token(name: str) -> Call:
    def call(text: str) -> object:
        from coder.domain.foundation import signed_tokens

        try:
            return getattr(signed_tokens, name)(text)
        except signed_tokens.TokenRefused:
            return None

    return _text(call)


def _without_waiting(read: Callable[[Any], Any], *refusals: type[Exception]) -> object:
    """Without a database: the keys are scripted, and the coroutine of `read(context)` never waits."""
    from coder.domain.foundation.signed_tokens import SigningKey

    class Keys:
        async def find(self, _feature: str, _id: str) -> SigningKey:
            return SigningKey("1", bytes(32))

    class Context:
        class clock:  # noqa: N801 - the attribute's name
            now = staticmethod(lambda: datetime(2030, 1, 1, tzinfo=UTC))

        class services:  # noqa: N801 - the attribute's name
            signing_keys = Keys()

    try:
        read(Context()).send(None)
    except StopIteration as done:
        return done.value
    except refusals:
        return None
    raise AssertionError("it waited")


def _node_keys(data: bytes) -> object:
    from coder.coderd.services.network.node_keys import keys_of_untrusted

    return keys_of_untrusted(data)


def _resume(text: str) -> object:
    from uuid import UUID

    from coder.api.base.refusals import Unauthenticated
    from coder.coderd.services.network import resume_tokens

    caller = resume_tokens.ResumeBinding(UUID(int=1), "session")
    return _without_waiting(lambda ctx: resume_tokens.read_untrusted(ctx, text, caller), Unauthenticated)


def _ticket(text: str) -> object:
    from coder.coderd.services.apps import app_tokens
    from coder.domain.foundation.signed_tokens import TokenRefused

    return _without_waiting(lambda ctx: app_tokens.read_ticket_untrusted(ctx, text), TokenRefused)


def _tickets(text: str) -> object:
    from coder.coderd.services.apps import app_tokens

    wanted: Any = None
    return _without_waiting(lambda ctx: app_tokens.find_ticket_untrusted(ctx, text.split(" "), wanted))


def _terminal_ticket(text: str) -> object:
    from uuid import UUID

    from coder.coderd.services.apps import session_handover

    return _without_waiting(lambda ctx: session_handover.find_terminal_visitor(ctx, text, UUID(int=1)))


def _sealed_key(text: str) -> object:
    from coder.coderd.services.apps import app_tokens
    from coder.domain.foundation.signed_tokens import TokenRefused

    return _without_waiting(lambda ctx: app_tokens.open_key_untrusted(ctx, text), TokenRefused)


def _daemon_report(data: bytes) -> object:
    from coder.coderd.services.provisioning import daemon_health_checks

    return daemon_health_checks._read_report_untrusted(data)


def _agent_upgrade(data: bytes) -> object:
    from coder.coderd.services.agents.agent_http import read_upgrade_untrusted
    from coder.coderd.services.network.stream_http import AgentAnswer

    return read_upgrade_untrusted(AgentAnswer(200, data))


def _template_files(data: bytes) -> object:
    from coder.coderd.services.templates.template_sources import unpack_untrusted

    return unpack_untrusted(io.BytesIO(data))


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


HEAD = _base64(json.dumps({"alg": "HS512", "kid": "1"}).encode())


TOKEN = HEAD + b"." + _base64(b'{"sub":"x","exp":1}') + b"." + _base64(bytes(64))


SEALED = _base64(b'{"alg":"dir","enc":"A256GCM","kid":"1"}') + b".." + b".".join(_base64(bytes(n)) for n in (12, 9, 16))
WRAPPED = (
    _base64(
        b'{"alg":"A256GCMKW","enc":"A256GCM","kid":"1","zip":"DEF","iv":"AAAAAAAAAAAAAAAA","tag":"AAAAAAAAAAAAAAAAAAAAAA"}'
    )
    + b"."
    + b".".join(_base64(bytes(n)) for n in (32, 12, 9, 16))
)


SERVER = {
    "coderd/services/agents/signed_message.py:certificate_untrusted": Harness(
        _certificate, (_message_refused(),), [_sample_certificate()]
    ),
    "coderd/services/agents/signed_message.py:open_untrusted": Harness(
        _signed_message, (_message_refused(),), [_signed_sample()]
    ),
    "coderd/services/agents/agent_api/vitals_calls.py:_read_untrusted": Harness(
        _text(_vitals),
        (CoderError,),
        [b'{"sent_at": "2026-11-28T00:00:00Z", "events": [], "disk_used": 1, "load": 0.5}'],
    ),
    "coderd/services/agents/agent_http.py:read_upgrade_untrusted": Harness(
        _agent_upgrade,
        (BadGateway,),
        [b'{"state": "watching", "detail": "", "version": "v2.34.0", "server_version": ""}'],
    ),
    "coderd/services/agents/agent_api/message_fields.py:uuid_untrusted": Harness(
        _agent_uuid, (CoderError,), [bytes(16)]
    ),
    "coderd/services/agents/agent_api/message_fields.py:address_untrusted": Harness(
        _text(_agent_address), (), [b"192.0.2.1", b"::1"]
    ),
    "coderd/services/templates/archives.py:safe_name_untrusted": Harness(
        _text(_safe_name), (), [b"a/b.tf", b"..\\x", b"C:/x"]
    ),
    "coderd/services/templates/template_sources.py:unpack_untrusted": Harness(_template_files, (), [_tar()]),
    "domain/foundation/signed_tokens.py:header_untrusted": Harness(_token("header_untrusted"), (), [TOKEN]),
    "domain/foundation/signed_tokens.py:_json_untrusted": Harness(_token("_json_untrusted"), (), [HEAD]),
    "coderd/services/network/node_keys.py:keys_of_untrusted": Harness(_node_keys, (), [b"\x0a\x02ab"]),
    "coderd/services/network/resume_tokens.py:read_untrusted": Harness(_text(_resume), (), [TOKEN]),
    "appproxy/apps/app_tickets.py:read_ticket_untrusted": Harness(_text(_ticket), (), [TOKEN]),
    "appproxy/apps/app_tickets.py:find_ticket_untrusted": Harness(_text(_tickets), (), [TOKEN + b" " + TOKEN]),
    "appproxy/apps/app_tickets.py:opens_terminal_untrusted": Harness(_text(_terminal_ticket), (), [TOKEN]),
    "appproxy/apps/app_tickets.py:open_key_untrusted": Harness(_text(_sealed_key), (), [SEALED, WRAPPED]),
    "coderd/services/apps/app_tokens.py:read_ticket_untrusted": Harness(_text(_ticket), (), [TOKEN]),
    "coderd/services/apps/app_tokens.py:find_ticket_untrusted": Harness(_text(_tickets), (), [TOKEN + b" " + TOKEN]),
    "coderd/services/apps/app_tokens.py:open_key_untrusted": Harness(_text(_sealed_key), (), [SEALED, WRAPPED]),
    "coderd/services/provisioning/daemon_health_checks.py:_read_report_untrusted": Harness(
        _daemon_report, (ValueError,), [b'{"version":"1"}']
    ),
}
