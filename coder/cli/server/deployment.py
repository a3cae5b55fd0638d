"""`coder features`, `coder licenses` and `coder notifications`: settings of the whole deployment."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from coder.api.site.deployment import Entitlements, License
from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import Options
from coder.cli.declarations.server.deployment import (
    ADD_LICENSE,
    CUSTOM,
    DELETE_LICENSE,
    FEATURES,
    LICENSES,
    PAUSE,
    PAUSE_PREBUILDS,
    RESUME,
    RESUME_PREBUILDS,
    TEST,
    FeaturesListOptions,
    LicensesAddOptions,
    LicensesListOptions,
)
from coder.cli.ui.output import Row, api_time, fields_of, print_rows, say
from coder.client.answers import read


@implements(FEATURES)
def _features(invocation: Invocation[FeaturesListOptions]) -> int:
    client = session.client(invocation)
    with add_action_to_errors("fetch entitlements"):
        answer = client.request("GET", "/api/v2/entitlements")
        features = read(answer, Entitlements).features
    print_rows(
        invocation,
        lambda: [{"name": name, **fields_of(feature)} for name, feature in sorted(features.items())],
        answer.json,
    )
    return 0


@implements(LICENSES)
def _licenses(invocation: Invocation[LicensesListOptions]) -> int:
    client = session.client(invocation)
    with add_action_to_errors("list licenses"):
        answer = client.request("GET", "/api/v2/licenses")
        licenses = read(answer, list[License])
    if not licenses and invocation.options.output != "json":
        say("No licenses found! No feature requires one.")
        return 0
    print_rows(
        invocation,
        lambda: [_license_row(item) for item in licenses],
        lambda: answer.json() or [],
    )
    return 0


def _license_row(license: License) -> Row:
    """Return the row of a license; only upstream servers have licenses."""
    until = license.claims.get("license_expires")
    features = license.claims.get("features")
    return {
        "id": license.id,
        "uuid": license.uuid,
        "uploaded at": api_time(license.uploaded_at),
        "features": ", ".join(sorted(features)) if isinstance(features, dict) else "",
        "expires at": _moment(until),
        "trial": license.claims.get("trial") is True,
    }


def _moment(seconds: Json) -> str:
    """Format a claim's time; a license can contain any value."""
    try:
        return api_time(datetime.fromtimestamp(seconds, UTC)) if isinstance(seconds, int | float) else ""
    except (OverflowError, ValueError, OSError):
        return ""


@implements(ADD_LICENSE)
def _add_license(_: Invocation[LicensesAddOptions]) -> int:
    """Print that every feature works without a license; nothing is stored."""
    say("This deployment needs no license: every feature is entitled. Nothing was stored.")
    return 0


def _pause_prebuilds(invocation: Invocation[Options], *, paused: bool) -> int:
    client = session.client(invocation)
    with add_action_to_errors(f"unable to {'pause' if paused else 'resume'} prebuilds"):
        body = {"reconciliation_paused": paused}
        client.request("PUT", "/api/v2/prebuilds/settings", json=body, expect=(200, 204, 304))
    say(f"Prebuilds are now {'paused' if paused else 'resumed'}.")
    return 0


def _set_paused(invocation: Invocation[Options], *, paused: bool) -> int:
    client = session.client(invocation)
    with add_action_to_errors(f"unable to {'pause' if paused else 'resume'} notifications"):
        body = {"notifier_paused": paused}
        client.request("PUT", "/api/v2/notifications/settings", json=body, expect=(200, 204, 304))
    say(f"Notifications are now {'paused' if paused else 'resumed'}.")
    return 0


@implements(TEST)
def _test(invocation: Invocation[Options]) -> int:
    client = session.client(invocation)
    with add_action_to_errors("unable to post test notification"):
        client.request("POST", "/api/v2/notifications/test")
    say("A test notification has been sent. If you don't receive the notification, check Coder's logs for any errors.")
    return 0


@implements(CUSTOM)
def _custom(invocation: Invocation[Options]) -> int:
    client = session.client(invocation)
    title, text = invocation.args
    with add_action_to_errors("unable to post custom notification"):
        client.request("POST", "/api/v2/notifications/custom", json={"content": {"title": title, "message": text}})
    sys.stdout.write("Custom notification sent successfully.\n")
    return 0


@implements(DELETE_LICENSE)
def _delete_license(invocation: Invocation[Options]) -> int:
    number = invocation.args[0]
    if not number.isdigit():
        raise CoderError("usage", f"license ID must be an integer: {number}")
    client = session.client(invocation)
    with add_action_to_errors("delete license"):
        client.request("DELETE", f"/api/v2/licenses/{number}")
    sys.stdout.write(f"License with ID {number} has been deleted.\n")
    return 0


@implements(PAUSE)
def _run_pause(invocation: Invocation[Options]) -> int:
    return _set_paused(invocation, paused=True)


@implements(RESUME)
def _run_resume(invocation: Invocation[Options]) -> int:
    return _set_paused(invocation, paused=False)


@implements(PAUSE_PREBUILDS)
def _run_pause_prebuilds(invocation: Invocation[Options]) -> int:
    return _pause_prebuilds(invocation, paused=True)


@implements(RESUME_PREBUILDS)
def _run_resume_prebuilds(invocation: Invocation[Options]) -> int:
    return _pause_prebuilds(invocation, paused=False)
