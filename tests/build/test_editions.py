"""What the slim program lacks is exactly what only commands of the server need."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))
import editions

from coder.cli.edition import explain_missing, is_slim
from coder.cli.command_table import COMMANDS

NEEDS_SERVER = {
    "provisioner list",  # works all the same; it shares a module with `start`
    "provisioner start", "provisionerd start", "reset-password", "server", "server create-admin-user",
    "server dbcrypt decrypt", "server dbcrypt delete", "server dbcrypt rotate", "server fix-oidc-links",
    "server postgres-builtin-serve", "server postgres-builtin-url",
    "server backup", "server restore", "server regenerate-vapid-keypair", "bundle", "terraform-provider",
    "workspace-proxy server",
}  # fmt: skip


def ours() -> list[str]:
    files = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "coder").rglob("*.py")]
    return sorted(
        {".".join(path.parts).removesuffix(".__init__") for path in files if "node_modules" not in path.parts}
    )


def test_rooms_of_agent_and_client_need_nothing_that_is_left_out() -> None:
    absent = set(editions.left_out(ours()))
    assert "coder.coderd.app" in absent and "coder.coderd.services.templates.examples" not in absent
    for name in ours():
        if not editions.in_server_rooms(name) and not name.startswith(("coder.cli", "coder.__main__")):
            assert not editions.imports(name) & absent, name


def test_commands_that_need_the_server_are_known() -> None:
    """A new one here is a command that agents and developers do not have: is that meant?"""
    absent = set(editions.left_out(ours()))
    lacking = {
        words
        for words, (place, _) in COMMANDS.items()
        if editions.closure([f"coder.cli.{place.partition(':')[0]}"]) & absent
    }
    assert lacking == NEEDS_SERVER


def test_in_an_ordinary_program_a_missing_module_is_a_defect() -> None:
    assert not is_slim()
    error = ModuleNotFoundError(name="coder.coderd.app")
    try:
        explain_missing(error)
    except ModuleNotFoundError as again:
        assert again is error
    else:
        raise AssertionError("a defect was explained away")


def test_in_the_slim_program_it_is_explained(monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr("coder.cli.edition.find_spec", lambda _: None)
    assert explain_missing(ModuleNotFoundError(name="coder.coderd.config")) == 1
    assert "slim build" in capsys.readouterr().err
