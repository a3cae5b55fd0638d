"""`coder templates init --builder`: the catalogue, a composition by flags and by prompts, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coder.cli.templates import builder
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.server.server_in_process import World, running_coderd

GIT = ("--module", "git-clone", "--module-variable", "git-clone.url=https://git.test/a.git")


async def init(world: World, home: Path, *words: str, stdin: str = "", code: int = 0) -> Result:
    env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token}
    result = await run_cli(["templates", "init", *words], home=home, env=env, stdin=stdin)
    assert result.code == code, (words, result.stdout, result.stderr)
    return result


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


async def test_catalogue_is_listed(tmp_path: Path) -> None:
    async with running_coderd(first_user=True) as world:
        table = (await init(world, tmp_path, "--list", "--column", "kind,id,required")).stdout.splitlines()
        rows = {tuple(line.split()[:2]): line.split()[2:] for line in table[1:]}
        assert (rows[("base", "scratch")], rows[("module", "git-clone")]) == ([], ["url"])
        listed = json.loads((await init(world, tmp_path, "--list", "-o", "json")).stdout)
        assert listed["bases"] == (await world.get("/api/v2/templatebuilder/bases")).json()["bases"]
        assert listed["modules"] == (await world.get("/api/v2/templatebuilder/modules")).json()["modules"]
        one = json.loads((await init(world, tmp_path, "--list", "--base", "aws-windows", "-o", "json")).stdout)
        assert [base["id"] for base in one["bases"]] == ["aws-windows"]
        assert {"zed"} < {module["id"] for module in one["modules"]} < {module["id"] for module in listed["modules"]}
        assert list(tmp_path.iterdir()) == []


async def test_flags_compose_template(tmp_path: Path) -> None:
    async with running_coderd(first_user=True) as world:
        words = ("--base", "kubernetes", "--base-variable", "namespace=dev", *GIT, "--base-variable")
        done = await init(world, tmp_path, *words, "use_kubeconfig=true", "--module", "zed", "my template")
        assert "cd 'my template' && coder templates push" in done.stdout
        made = tmp_path / "my template"
        modules = {f"modules/{name}/{file}" for name in ("git-clone", "zed") for file in ("README.md", "main.tf")}
        assert files(made) >= modules | {"README.md", "main.tf"}
        text = (made / "main.tf").read_text()
        assert 'default     = "dev"' in text and 'url      = "https://git.test/a.git"' in text
        again = await init(world, tmp_path, *words, "use_kubeconfig=true", "my template", code=1)
        assert "my template already holds README.md, main.tf" in again.stderr
        await init(world, tmp_path, "--base", "scratch")
        assert files(tmp_path / "scratch") == {"README.md", "main.tf"}


async def test_prompts_ask_for_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "is_interactive", lambda: True)  # prompts read lines here
    async with running_coderd(first_user=True) as world:
        answers = "scratch\ngit-clone,vscode-web\nhttps://git.test/b.git\n\n\n\n\ntrue\n\n\n\n\n\n"
        asked = await init(world, tmp_path, "--builder", "made", stdin=answers)
        assert all(text in asked.stdout for text in ("Choose a base:", "Choose modules:", "[true/false]: (false)"))
        text = (tmp_path / "made/main.tf").read_text()
        assert '"https://git.test/b.git"' in text and "accept_license = true" in text
        assert text.count("accept_license") == 1 and "  port" not in text, "defaults are not repeated"
        wrong = await init(world, tmp_path, "--builder", "other", stdin="mainframe\n", code=1)
        assert 'base "mainframe" not found' in wrong.stderr
        unanswered = await init(world, tmp_path, "--base", "scratch", "--module", "git-clone", stdin="\n", code=1)
        assert "A value is required." in unanswered.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--builder"], "Missing values for the required flags: base"),
        (["--base", "mainframe"], 'base "mainframe" not found'),
        (["--base", "scratch", "--module", "abacus"], 'module "abacus" not found, or it does not work with scratch'),
        (["--base", "aws-windows", "--module", "code-server"], "it does not work with aws-windows"),
        (["--base", "scratch", "--module", "git-clone"], "Missing a required value: --module-variable git-clone.url="),
        (["--base", "gcp-linux"], "Missing a required value: --base-variable project_id="),
        (["--base", "scratch", "--module-variable", "url=x"], "must have the form module.name=value"),
        (["--base", "scratch", *GIT, "--module-variable", "git-clone.x=1"], "There is no such variable."),
        (["--base", "scratch", "--id", "scratch"], "--id writes an example"),
        (["--id", "scratch", "-o", "json"], "--output json is for --list"),
    ],
)
async def test_wrong_words_write_nothing(words: list[str], message: str, tmp_path: Path) -> None:
    async with running_coderd(first_user=True) as world:
        assert message in (await init(world, tmp_path, *words, code=1)).stderr
        assert list(tmp_path.iterdir()) == []


async def test_disabled_builder_is_reported(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"disable_template_builder": True}
    async with running_coderd(first_user=True, **settings) as world:
        assert "The template builder is disabled." in (await init(world, tmp_path, "--list", code=1)).stderr
