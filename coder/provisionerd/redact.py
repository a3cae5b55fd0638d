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

from coder.base.json_types import Json, as_list, as_object, as_text
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
        # A state may contain half a surrogate pair, which no strict encoder accepts.
        encoded = secret.encode("utf-8", "surrogatepass")[:_MAX_LENGTH]
        yield base64.b64encode(encoded).decode().rstrip("=")


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
        yield from state_secrets(acquired.template_dry_run.state)


_TOKENS = frozenset({"token", "session_token", "oidc_access_token", "ssh_private_key", "access_token"})
"""Attributes of `coder_*` resources and data sources that hold secrets, whether the state marks them or not."""


def state_secrets(state: bytes) -> Iterator[str]:
    """Yield the secrets of a Terraform state: tokens of coder's provider, and the attributes marked sensitive.

    The plan of a preview compares with values of earlier builds, which the job itself does not have.
    """
    try:
        document: Json = json.loads(state) if state else None
    except (ValueError, RecursionError):
        return
    for resource in map(as_object, as_list(as_object(document).get("resources"))):
        is_ours = as_text(resource.get("type")).startswith("coder_")
        for instance in map(as_object, as_list(resource.get("instances"))):
            marked = {_first_step(path) for path in as_list(instance.get("sensitive_attributes"))}
            for name, value in as_object(instance.get("attributes")).items():
                if name in marked or (is_ours and name in _TOKENS):
                    yield from _texts_in(value)


def _first_step(path: Json) -> str:
    """Return the attribute that a path of a state file begins with."""
    steps = as_list(path)
    return as_text(as_object(steps[0]).get("value")) if steps else ""


def _texts_in(value: Json) -> Iterator[str]:
    """Yield the texts of a value, nested as deeply as the parser allows: no recursion, which would end before it."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict | list):
            waiting += item.values() if isinstance(item, dict) else item


def sensitive_values(values: Iterable[pb.VariableValue]) -> Iterator[str]:
    yield from (item.value for item in values if item.sensitive)


def _metadata_secrets(metadata: pb.Metadata) -> Iterator[str]:
    yield metadata.workspace_owner_session_token
    yield metadata.workspace_owner_oidc_access_token
    yield metadata.workspace_owner_ssh_private_key
    yield from (item.token for item in metadata.running_agent_auth_tokens)
