"""Declaration of `coder upgrade`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import YesOption, option, output_option
from coder.cli.declarations.server.direct_database import PostgresAuthOption, postgres_url_option


class UpgradeOptions(PostgresAuthOption, YesOption):
    """Options of `coder upgrade`."""

    release_list: str = option(
        "",
        "List of releases: a URL, a file, or the folder of a mirror with a releases.json.",
        env="CODER_RELEASE_LIST",
    )
    key: str = option(
        "",
        "Minisign public key of the publisher, or a file with it; defaults to the keys pinned in this program.",
        env="CODER_RELEASE_KEY",
    )
    version: str = option("", "Release to install, also an older one; defaults to the newest one of the list.")
    check: bool = option(False, "Print what is available and change nothing.")
    dry_run: bool = option(
        False, "Download and verify the release, try the new program, and change nothing afterwards."
    )
    rollback: bool = option(False, "Put the program of the last upgrade back.")
    backup_dir: str = option(
        "", "Folder for the backup of the database; defaults to backups in the server's data directory."
    )
    postgres_url: str = postgres_url_option(running=True)
    restart: bool = option(False, "Restart the service coder.service afterwards, if it runs this program.")
    output: str = output_option(("text", "json"), "text")


UPGRADE = Command(
    words="upgrade",
    summary="Upgrade this program to a release of a list that an administrator names",
    options=UpgradeOptions,
    max_args=0,
    long=(
        "For servers and laptops whose program was installed by the script. Shows what changes, backs up the database "
        "first if the schema moves, verifies the signature, tries the new program, replaces this one, and keeps it for "
        "--rollback. After any failure this program is unchanged. Packages, containers and agents are upgraded in "
        "their own way; the command prints it."
    ),
    examples=(
        ("Show what is available", "coder upgrade --release-list https://releases.example.com/ --check"),
        ("Upgrade from the folder of an offline mirror", "coder upgrade --release-list /mnt/releases --yes"),
        ("Upgrade a server as root and restart its service", "coder upgrade --restart"),
        ("Return to the program before", "coder upgrade --rollback"),
    ),
)
