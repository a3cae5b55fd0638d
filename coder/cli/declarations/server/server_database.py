"""Declarations of `coder server dbcrypt …` and of other changes of the database."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import YesOption, option
from coder.cli.declarations.server.direct_database import PostgresAuthOption, postgres_url_option


class ServerDbcryptDecryptOptions(PostgresAuthOption, YesOption):
    """Options of `coder server dbcrypt decrypt`."""

    keys: tuple[str, ...] = option(
        (),
        "Current encryption keys in Base64, separated by commas.",
        env="CODER_EXTERNAL_TOKEN_ENCRYPTION_DECRYPT_KEYS",
        secret=True,
    )
    postgres_url: str = postgres_url_option()


class ServerDbcryptDeleteOptions(PostgresAuthOption, YesOption):
    """Options of `coder server dbcrypt delete`."""

    postgres_url: str = postgres_url_option("CODER_EXTERNAL_TOKEN_ENCRYPTION_POSTGRES_URL")


class ServerDbcryptRotateOptions(PostgresAuthOption, YesOption):
    """Options of `coder server dbcrypt rotate`."""

    new_key: str = option(
        "",
        "New encryption key: 32 bytes in Base64.",
        env="CODER_EXTERNAL_TOKEN_ENCRYPTION_ENCRYPT_NEW_KEY",
        secret=True,
    )
    old_keys: tuple[str, ...] = option(
        (),
        "Current encryption keys in Base64, separated by commas.",
        env="CODER_EXTERNAL_TOKEN_ENCRYPTION_ENCRYPT_OLD_KEYS",
        secret=True,
    )
    postgres_url: str = postgres_url_option()


class ServerFixOidcLinksOptions(PostgresAuthOption, YesOption):
    """Options of `coder server fix-oidc-links`."""

    issuer_url: str = option(
        "",
        "URL of the current OpenID provider; accounts linked to it do not change.",
        env="CODER_OIDC_ISSUER_URL",
    )
    dry_run: bool = option(
        False,
        "Print the number of accounts that would be unlinked, without changes.",
        env="CODER_FIX_OIDC_LINKS_DRY_RUN",
        short="n",
    )
    force_reset_all: bool = option(
        False,
        "Unlink every account from its provider, regardless of the issuer.",
        env="CODER_FIX_OIDC_LINKS_FORCE_RESET_ALL",
    )
    postgres_url: str = postgres_url_option(running=True)


class ServerRegenerateVapidKeypairOptions(PostgresAuthOption, YesOption):
    """Options of `coder server regenerate-vapid-keypair`."""

    postgres_url: str = postgres_url_option(running=True)


DECRYPT = Command(
    words="server dbcrypt decrypt",
    summary="Decrypt all encrypted database fields",
    options=ServerDbcryptDecryptOptions,
    max_args=0,
    examples=(
        ("Decrypt the database", "coder server dbcrypt decrypt --keys MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="),
    ),
)

FORGET = Command(
    words="server dbcrypt delete",
    summary="Delete all encrypted database fields whose keys are lost",
    options=ServerDbcryptDeleteOptions,
    max_args=0,
    examples=(("Delete encrypted values whose keys are lost", "coder server dbcrypt delete -y"),),
)

ROTATE = Command(
    words="server dbcrypt rotate",
    summary="Encrypt the database's secrets with a new key",
    options=ServerDbcryptRotateOptions,
    max_args=0,
    examples=(
        (
            "Encrypt the database with a new key",
            "coder server dbcrypt rotate --new-key MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        ),
    ),
)

FIX_LINKS = Command(
    words="server fix-oidc-links",
    summary="Unlink accounts from a former OpenID provider",
    options=ServerFixOidcLinksOptions,
    max_args=0,
    examples=(
        (
            "Count the accounts linked to a former provider",
            "coder server fix-oidc-links --issuer-url https://login.example.com --dry-run",
        ),
    ),
)


NEW_PUSH_KEYS = Command(
    words="server regenerate-vapid-keypair",
    summary="Generate new keys for browser notifications and delete all subscriptions",
    options=ServerRegenerateVapidKeypairOptions,
    max_args=0,
    examples=(("Replace the keys of browser notifications", "coder server regenerate-vapid-keypair -y"),),
)
