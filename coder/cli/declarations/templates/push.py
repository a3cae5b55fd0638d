"""Declarations of the commands that bring templates: `coder templates init`, `create` and `push`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import coder.coderd
from coder.cli.core.command import Command
from coder.cli.core.options import OrgOption, TableOptions, YesOption, column_option, option, output_option
from coder.cli.declarations.provisioning.no_provisioner import WaitOption

FAILURE_TTL: timedelta = option(
    timedelta(),
    "Stop workspaces this long after a failed build, like 1h; 0 disables it.",
)


DORMANCY: timedelta = option(
    timedelta(),
    "Mark workspaces dormant after this long without use, like 720h; 0 disables it.",
    flag="dormancy-threshold",
)


DELETION: timedelta = option(
    timedelta(),
    "Delete workspaces that are dormant for this long, like 720h; 0 disables it.",
    flag="dormancy-auto-deletion",
)


REQUIRE_ACTIVE_VERSION: bool = option(
    False,
    "Require the active version for workspace starts; administrators are exempt.",
)


def _example_ids() -> tuple[str, ...]:
    """Return the names of the bundled examples, without reading them."""
    folder = Path(coder.coderd.__file__).parent / "examples"
    return tuple(sorted(path.parent.name for path in folder.glob("*/README.md")))


class TemplatesPushOptions(WaitOption, OrgOption, YesOption):
    """Options of `coder templates push`."""

    private: bool = False
    require_active_version: bool = False
    directory: str = option(
        ".",
        'Directory with the template\'s files; "-" reads a tar archive from standard input, as does a pipe '
        "without this flag.",
        short="d",
    )
    include: tuple[str, ...] = option(
        (),
        "Pattern of paths to upload although they are hidden, state, values of variables, links out of the "
        "template, or large; may be repeated.",
    )
    variables_file: str = option(
        "",
        'YAML file with values of Terraform variables, one "name: value" per line.',
    )
    variable: tuple[str, ...] = option(
        (),
        "Value of a Terraform variable, like image=debian; may be repeated.",
    )
    var: tuple[str, ...] = option(
        (),
        "Value of a Terraform variable, name=value; the same as --variable.",
    )
    provisioner_tag: tuple[str, ...] = option(
        (),
        'Required provisioner tag, key=value; "-" removes all tags.',
    )
    name: str = option(
        "",
        "Name of the new version; generated if not set.",
    )
    always_prompt: bool = option(
        False,
        "Prompt for every variable, including those that have a value.",
    )
    activate: bool = option(
        True,
        "Make this the active version; =false keeps the current one.",
    )
    ignore_lockfile: bool = option(
        False,
        "Suppress the warning about a missing .terraform.lock.hcl, which pins providers.",
    )
    message: str = option(
        "",
        "Message that describes the change, shown in the list of versions.",
        short="m",
    )
    test_provisioner: str = option(
        "",
        flag="test.provisioner",
        hidden=True,
    )


class TemplatesCreateOptions(TemplatesPushOptions, bases_first=True):
    """Options of `coder templates create`."""

    private: bool = option(
        False,
        "Restrict the template to you and administrators until you grant access to others.",
    )
    require_active_version: bool = REQUIRE_ACTIVE_VERSION
    default_ttl: timedelta = option(
        timedelta(hours=24),
        "Stop new workspaces this long after each start, like 24h; 0 disables it.",
    )
    failure_ttl: timedelta = FAILURE_TTL
    dormancy: timedelta = DORMANCY
    deletion: timedelta = DELETION


BUILDER_COLUMNS = ("kind", "id", "name", "category", "systems", "required", "conflicts with", "version", "description")


class TemplatesInitOptions(TableOptions):
    """Options of `coder templates init`."""

    id: str = option(
        "",
        "Id of the example template; prompted for if not set.",
        choices=_example_ids(),
    )
    builder: bool = option(
        False,
        "Compose the template from a base and modules of the server's template builder.",
    )
    base: str = option(
        "",
        "Id of the base of the composed template; implies --builder.",
    )
    module: tuple[str, ...] = option(
        (),
        "Id of a module of the composed template; may be repeated.",
    )
    base_variable: tuple[str, ...] = option(
        (),
        "Default of a variable of the base, name=value; may be repeated.",
    )
    module_variable: tuple[str, ...] = option(
        (),
        "Variable of a module, module.name=value, like git-clone.url=https://git.example.com/app; may be repeated.",
    )
    list: bool = option(
        False,
        "List the bases and modules instead of writing files. With --base, list only the modules that work with it.",
    )
    column: tuple[str, ...] = column_option(BUILDER_COLUMNS, ("kind", "id", "name", "required", "description"))
    output: str = output_option()


CREATE = Command(
    words="templates create",
    summary="Create a template from the current directory or as specified by flag",
    options=TemplatesCreateOptions,
    usage="[template]",
    max_args=1,
    examples=(
        ("Create a template from the current directory", "coder templates create my-template"),
        (
            "Create a private template from another directory",
            "coder templates create my-template -d ./docker --private",
        ),
    ),
)

INIT = Command(
    words="templates init",
    summary="Get started with a templated template",
    options=TemplatesInitOptions,
    usage="[directory]",
    max_args=1,
    examples=(
        ("Start from an example template", "coder templates init --id scratch my-template"),
        ("Choose an example from a list", "coder templates init"),
        ("List the bases and modules of the template builder", "coder templates init --list"),
        (
            "Compose a template from a base and two modules",
            "coder templates init --base docker --module code-server --module git-clone "
            "--module-variable git-clone.url=https://git.example.com/app my-template",
        ),
    ),
)

PUSH = Command(
    words="templates push",
    summary="Create or update a template from the current directory or as specified by flag",
    options=TemplatesPushOptions,
    usage="[template]",
    max_args=1,
    examples=(
        ("Create or update a template from the current directory", "coder templates push my-template"),
        (
            "Push another directory, with a variable and a message",
            'coder templates push my-template -d ./docker --variable image=debian -m "newer image"',
        ),
        ("Push a version without activating it", "coder templates push my-template --activate=false"),
    ),
)
