"""Redaction of job logs: secrets of the job are replaced before a line is sent.

Known secrets are those the server sent with the job: values of variables marked sensitive, the owner's session, OIDC
and external-auth tokens, SSH private keys, running agents' tokens. Values that a template computes are unknown here.
Texts shorter than `MIN_SECRET` are not redacted: replacing them would damage ordinary output and protect nothing.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator

from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd

REPLACEMENT = "(sensitive value)"
MIN_SECRET = 6
_MAX_LENGTH = 64 * 1024
"Length of the compared prefix of a longer value."


class Redactor:
    """Replaces known secrets in texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Add secrets to hide from now on."""
        new_forms = {form for secret in secrets for form in _forms(secret)} - self._known
        if new_forms:
            self._known |= new_forms
            self._pattern = None

    def clean(self, text: str) -> str:
        # Hardly any line holds a secret, and compiling the pattern takes longer than searching for each secret
        # separately.
        if not any(form in text for form in self._known):
            return text
        if self._pattern is None:
            # The longest first: a secret that contains another one disappears whole.
            longest = sorted(self._known, key=len, reverse=True)
            self._pattern = re.compile("|".join(re.escape(form) for form in longest))
        return self._pattern.sub(REPLACEMENT, text)


def _forms(secret: str) -> Iterator[str]:
    """Yield the forms a secret may have in a log: line by line, escaped as JSON, in base64."""
    for line in secret.splitlines():
        text = line.strip()[:_MAX_LENGTH]
        if len(text) < MIN_SECRET or text.startswith("-----"):
            continue
        yield text
        escaped = json.dumps(text)[1:-1]
        if escaped != text:
            yield escaped
    if len(secret) >= MIN_SECRET:
        yield base64.b64encode(secret.encode()[:_MAX_LENGTH]).decode().rstrip("=")


def job_secrets(acquired: pd.AcquiredJob) -> Iterator[str]:
    """Yield the secrets that the server sent with a job."""
    kind = acquired.WhichOneof("type")
    if kind == "workspace_build":
        build = acquired.workspace_build
        yield from sensitive_values(build.variable_values)
        yield from (item.access_token for item in build.external_auth_providers)
        yield from _metadata_secrets(build.metadata)
    elif kind == "template_dry_run":
        yield from sensitive_values(acquired.template_dry_run.variable_values)


def sensitive_values(values: Iterable[pb.VariableValue]) -> Iterator[str]:
    yield from (item.value for item in values if item.sensitive)


def _metadata_secrets(metadata: pb.Metadata) -> Iterator[str]:
    yield metadata.workspace_owner_session_token
    yield metadata.workspace_owner_oidc_access_token
    yield metadata.workspace_owner_ssh_private_key
    yield from (item.token for item in metadata.running_agent_auth_tokens)
