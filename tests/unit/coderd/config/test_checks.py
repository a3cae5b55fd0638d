"""Settings that contradict each other or cannot be used are refused before the server starts."""

from __future__ import annotations

from typing import Any

import pytest

from coder.base.errors import CoderError
from coder.coderd.config.checks import MAPPINGS, check_config
from coder.coderd.config.settings import ServerConfig

AN_ID = "2f3c0a1e-0000-4000-8000-000000000001"


@pytest.mark.parametrize("name", MAPPINGS)
@pytest.mark.parametrize(
    "value", ["", "{}", '{"a": []}', f'{{"a": ["{AN_ID}"]}}', {"a": [AN_ID]}, {}, None, "null", '{"a": null}']
)
def test_a_mapping_of_words(name: str, value: Any) -> None:
    check_config(ServerConfig(**{name: value}))


@pytest.mark.parametrize("name", MAPPINGS)
@pytest.mark.parametrize("value", ["{", '"a"', '{"a": 1}', '{"a": [1]}', '{"a": {"b": "c"}}', "1"])
def test_a_mapping_that_says_nothing_is_refused(name: str, value: Any) -> None:
    with pytest.raises(CoderError, match=f"--{name.replace('_', '-')} does not say"):
        check_config(ServerConfig(**{name: value}))


@pytest.mark.parametrize("value", ['{"a": "engineering"}', '{"a": ["engineering"]}'])
def test_organizations_are_named_by_id(value: str) -> None:
    """Else the first who logs in with that word would be answered with an internal error."""
    with pytest.raises(CoderError, match="id of an organization"):
        check_config(ServerConfig(oidc_organization_mapping=value))
    check_config(ServerConfig(oidc_group_mapping=value, oidc_user_role_mapping=value))


@pytest.mark.parametrize("most", [0, -1])
def test_a_server_needs_a_connection(most: int) -> None:
    """A pool of none would be one without a limit."""
    with pytest.raises(CoderError, match="--postgres-conn-max-open"):
        check_config(ServerConfig(postgres_conn_max_open=most))
    check_config(ServerConfig(postgres_conn_max_open=1))
