"""`coder features`, `coder licenses` and `coder notifications`: settings of the whole deployment."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from coder.api.site.deployment import Entitlements, License
from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import Command, Invocation, column_option, output_option
from coder.cli.core.failures import add_action_to_errors
from coder.cli.ui.output import Row, api_time, fields_of, print_rows, say
from coder.client.answers import read

FEATURE_COLUMNS = ("name", "entitlement", "enabled", "limit", "actual")
LICENSE_COLUMNS = ("id", "uuid", "uploaded at", "features", "expires at", "trial")


def _features(invocation: Invocation) -> int:
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


def _licenses(invocation: Invocation) -> int:
    client = session.client(invocation)
    with add_action_to_errors("list licenses"):
        answer = client.request("GET", "/api/v2/licenses")
        licenses = read(answer, list[License])
    if not licenses and invocation["output"] != "json":
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


def _moment(seconds: object) -> str:
    """Format a claim's time; a license can contain any value."""
    try:
        return api_time(datetime.fromtimestamp(seconds, UTC)) if isinstance(seconds, int | float) else ""
    except (OverflowError, ValueError, OSError):
        return ""


def _add_license(_: Invocation) -> int:
    """Print that every feature works without a license; nothing is stored."""
    say("This deployment needs no license: every feature is entitled. Nothing was stored.")
    return 0


def _pause_prebuilds(invocation: Invocation, *, paused: bool) -> int:
    client = session.client(invocation)
    with add_action_to_errors(f"unable to {'pause' if paused else 'resume'} prebuilds"):
        body = {"reconciliation_paused": paused}
        client.request("PUT", "/api/v2/prebuilds/settings", json=body, expect=(200, 204, 304))
    say(f"Prebuilds are now {'paused' if paused else 'resumed'}.")
    return 0


def _set_paused(invocation: Invocation, *, paused: bool) -> int:
    client = session.client(invocation)
    with add_action_to_errors(f"unable to {'pause' if paused else 'resume'} notifications"):
        body = {"notifier_paused": paused}
        client.request("PUT", "/api/v2/notifications/settings", json=body, expect=(200, 204, 304))
    say(f"Notifications are now {'paused' if paused else 'resumed'}.")
    return 0


def _test(invocation: Invocation) -> int:
    client = session.client(invocation)
    with add_action_to_errors("unable to post test notification"):
        client.request("POST", "/api/v2/notifications/test")
    say("A test notification has been sent. If you don't receive the notification, check Coder's logs for any errors.")
    return 0


def _custom(invocation: Invocation) -> int:
    client = session.client(invocation)
    title, text = invocation.args
    with add_action_to_errors("unable to post custom notification"):
        client.request("POST", "/api/v2/notifications/custom", json={"content": {"title": title, "message": text}})
    sys.stdout.write("Custom notification sent successfully.\n")
    return 0


def _delete_license(invocation: Invocation) -> int:
    number = invocation.args[0]
    if not number.isdigit():
        raise CoderError("usage", f"license ID must be an integer: {number}")
    client = session.client(invocation)
    with add_action_to_errors("delete license"):
        client.request("DELETE", f"/api/v2/licenses/{number}")
    sys.stdout.write(f"License with ID {number} has been deleted.\n")
    return 0


FEATURES = Command(
    words="features list",
    summary="List features",
    run=_features,
    max_args=0,
    options=(column_option(FEATURE_COLUMNS, FEATURE_COLUMNS), output_option()),
)
LICENSES = Command(
    words="licenses list",
    summary="List licenses (including expired)",
    run=_licenses,
    max_args=0,
    options=(
        column_option(LICENSE_COLUMNS, ("id", "uuid", "expires at", "uploaded at", "features")),
        output_option(),
    ),
)
PAUSE = Command(
    words="notifications pause",
    summary="Pause notifications",
    run=lambda invocation: _set_paused(invocation, paused=True),
    max_args=0,
)
RESUME = Command(
    words="notifications resume",
    summary="Resume notifications",
    run=lambda invocation: _set_paused(invocation, paused=False),
    max_args=0,
)
TEST = Command(words="notifications test", summary="Send a test notification", run=_test, max_args=0)
CUSTOM = Command(
    words="notifications custom",
    summary="Send a custom notification",
    usage="<title> <message>",
    run=_custom,
    min_args=2,
    max_args=2,
)
ADD_LICENSE = Command(
    words="licenses add",
    summary="Add a license (no feature requires one)",
    run=_add_license,
    max_args=0,
    options=(
        Option(
            "file",
            "file",
            short="f",
            help="File with a license; nothing is stored, as no feature requires one.",
        ),
        Option(
            "license",
            "license",
            short="l",
            secret=True,
            help="License text; nothing is stored, as no feature requires one.",
        ),
        Option(
            "debug",
            "debug",
            kind="bool",
            default=False,
            help="Accepted for older scripts, without effect: no license is read.",
        ),
    ),
)
DELETE_LICENSE = Command(
    words="licenses delete",
    summary="Delete a license by its number",
    usage="<id>",
    run=_delete_license,
    min_args=1,
    max_args=1,
)
PAUSE_PREBUILDS = Command(
    words="prebuilds pause",
    summary="Pause prebuilt workspaces",
    run=lambda invocation: _pause_prebuilds(invocation, paused=True),
    max_args=0,
)
RESUME_PREBUILDS = Command(
    words="prebuilds resume",
    summary="Resume prebuilt workspaces",
    run=lambda invocation: _pause_prebuilds(invocation, paused=False),
    max_args=0,
)
