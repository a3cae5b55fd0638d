"""`GET /deployment/config`: every member of every option as recorded, and a tree that Go's clients decode."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coder.api.base.refusals import Forbidden
from coder.base.config import Inputs
from coder.coderd.config.reading import server_config
from coder.coderd.services.foundation.context import Context
from coder.coderd.services.site.deployment_config import configuration, tree
from coder.domain.access.policy import Subject
from tests.kit.paths import DATA
from tests.unit.coderd.config.test_config import OTHER_DEFAULTS, recorded_options

OWNER = Subject("user", site_roles=frozenset({"owner"}))
TYPES: dict[str, Any] = {"string": str, "bool": bool, "number": int, "list": list, "null": type(None)}
PROVIDER = {
    "CODER_EXTERNAL_AUTH_0_ID": "hub",
    "CODER_EXTERNAL_AUTH_0_TYPE": "github",
    "CODER_EXTERNAL_AUTH_0_CLIENT_ID": "xyz",
    "CODER_EXTERNAL_AUTH_0_CLIENT_SECRET": "not for you",
}


def minimal_context(**env: str) -> Context:
    """Return a minimal context to read the configuration from."""
    config = server_config(Inputs(env=env), Path("/nowhere"))
    return cast("Context", SimpleNamespace(config=config, access_url="http://coder.example"))


def options(**env: str) -> dict[str, dict[str, Any]]:
    listed: Any = configuration(minimal_context(**env), OWNER)["options"]
    return {option["flag"]: option for option in listed}


SHOWN = options()


@pytest.mark.parametrize("recorded", recorded_options(), ids=lambda option: str(option["flag"]))
def test_options_match_recording(recorded: dict[str, Any]) -> None:
    ours = json.loads(json.dumps(SHOWN[recorded["flag"]]))
    assert ours.pop("description")
    value = ours.pop("value", None)
    assert ours.pop("value_source", "") == ("default" if ours.get("default") else "")
    _without_descriptions(ours.get("group"))
    ours |= {"use_instead": [other["name"] for other in ours["use_instead"]]} if "use_instead" in ours else {}
    expected = {name: member for name, member in recorded.items() if not name.startswith("value_")}
    if recorded["flag"] in OTHER_DEFAULTS:
        ours.pop("default", None), expected.pop("default")
    assert ours == expected
    _same_kind(value, recorded)


def _without_descriptions(group: dict[str, Any] | None) -> None:
    while group:
        group.pop("description", None)
        group = group.get("parent")


def _same_kind(value: Any, recorded: dict[str, Any]) -> None:
    kind = recorded["value_type"]
    if kind.startswith("object"):
        assert value == recorded["value_sample"]
    else:
        assert type(value) is TYPES[kind], value


def test_tree_matches_recording() -> None:
    lines = (DATA / "api" / "recorded" / "exchanges" / "deployment.jsonl").read_text().splitlines()
    answers = (json.loads(line) for line in lines)
    recorded = next(a["response"]["body"]["config"] for a in answers if a["request"]["path"].endswith("/config"))
    ours: Any = tree(
        minimal_context(CODER_DANGEROUS_DISABLE_RATE_LIMITS="true", CODER_DERP_SERVER_STUN_ADDRESSES="disable")
    )
    del recorded["ai"], recorded["template_builder"]
    assert ours.pop("template_builder") == {"registry_url": ""}, "no registry unless an administrator sets one"
    own = {"access_url", "http_address", "cache_directory"}
    ours.pop("external_auth_github_default_provider_enable", None)
    recorded["oauth2"]["github"].pop("default_provider_enable"), ours["oauth2"]["github"].pop("default_provider_enable")
    assert {k: v for k, v in ours.items() if k not in own} == {k: v for k, v in recorded.items() if k not in own}


def test_values_shown_secrets_hidden() -> None:
    given = options(
        CODER_SAMESITE_AUTH_COOKIE="none",
        CODER_OIDC_ISSUER_URL="https://issuer.test",
        CODER_OIDC_CLIENT_ID="deployment",
        CODER_OIDC_CLIENT_SECRET="hush",
        CODER_SESSION_DURATION="90m",
        CODER_OIDC_GROUP_MAPPING='{"a": "b"}',
        CODER_EXPERIMENTS="one,two",
        CODER_NOTIFICATIONS_EMAIL_FROM="a@b.c",
        **PROVIDER,
    )
    assert given["samesite-auth-cookie"]["value"] == {"Choices": ["lax", "none"], "Value": "none"}
    assert given["session-duration"]["value"] == 5_400_000_000_000
    assert given["session-duration"]["value_source"] == "env"
    assert given["oidc-group-mapping"]["value"] == {"a": "b"}
    assert given["experiments"]["value"] == ["one", "two"]
    assert given["email-from"]["value"] == "a@b.c"
    assert given["external-auth-providers"]["value"][0]["id"] == "hub"
    assert "hush" not in json.dumps(given) and "not for you" not in json.dumps(given)
    assert given["oidc-client-secret"].keys() & {"value", "default"} == set()


def test_permission_is_required() -> None:
    with pytest.raises(Forbidden):
        configuration(minimal_context(), Subject("user"))
