"""Declarations of 10 commands: deployment."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, TableOptions, column_option, option, output_option

FEATURE_COLUMNS = ("name", "entitlement", "enabled", "limit", "actual")
LICENSE_COLUMNS = ("id", "uuid", "uploaded at", "features", "expires at", "trial")


class FeaturesListOptions(TableOptions):
    """Options of `coder features list`."""

    column: tuple[str, ...] = column_option(FEATURE_COLUMNS, FEATURE_COLUMNS)
    output: str = output_option()


class LicensesAddOptions(Options):
    """Options of `coder licenses add`."""

    file: str = option(
        "",
        "File with a license; nothing is stored, as no feature requires one.",
        short="f",
    )
    license: str = option(
        "",
        "License text; nothing is stored, as no feature requires one.",
        short="l",
        secret=True,
    )
    debug: bool = option(
        False,
        "Accepted for older scripts, without effect: no license is read.",
    )


class LicensesListOptions(TableOptions):
    """Options of `coder licenses list`."""

    column: tuple[str, ...] = column_option(LICENSE_COLUMNS, ("id", "uuid", "expires at", "uploaded at", "features"))
    output: str = output_option()


FEATURES = Command(
    words="features list",
    summary="List features",
    options=FeaturesListOptions,
    max_args=0,
    examples=(
        ("List the features of the deployment", "coder features list"),
        ("Print JSON for a script", "coder features list -o json"),
    ),
)

ADD_LICENSE = Command(
    words="licenses add",
    summary="Add a license (no feature requires one)",
    options=LicensesAddOptions,
    max_args=0,
    examples=(("Add a license", "coder licenses add --file license.txt"),),
)

DELETE_LICENSE = Command(
    words="licenses delete",
    summary="Delete a license by its number",
    options=Options,
    usage="<id>",
    min_args=1,
    max_args=1,
    examples=(("Delete a license by its id", "coder licenses delete 1"),),
)

LICENSES = Command(
    words="licenses list",
    summary="List licenses (including expired)",
    options=LicensesListOptions,
    max_args=0,
    examples=(("List the licenses of the deployment", "coder licenses list"),),
)

CUSTOM = Command(
    words="notifications custom",
    summary="Send a custom notification",
    options=Options,
    usage="<title> <message>",
    min_args=2,
    max_args=2,
    examples=(
        ("Send yourself a notification from a script", 'coder notifications custom "Build done" "The image is ready."'),
    ),
)

PAUSE = Command(
    words="notifications pause",
    summary="Pause notifications",
    options=Options,
    max_args=0,
    examples=(("Pause all notifications", "coder notifications pause"),),
)

RESUME = Command(
    words="notifications resume",
    summary="Resume notifications",
    options=Options,
    max_args=0,
    examples=(("Resume notifications", "coder notifications resume"),),
)

TEST = Command(
    words="notifications test",
    summary="Send a test notification",
    options=Options,
    max_args=0,
    examples=(("Send yourself a test notification", "coder notifications test"),),
)

PAUSE_PREBUILDS = Command(
    words="prebuilds pause",
    summary="Pause prebuilt workspaces",
    options=Options,
    max_args=0,
    examples=(("Pause prebuilt workspaces", "coder prebuilds pause"),),
)

RESUME_PREBUILDS = Command(
    words="prebuilds resume",
    summary="Resume prebuilt workspaces",
    options=Options,
    max_args=0,
    examples=(("Resume prebuilt workspaces", "coder prebuilds resume"),),
)
