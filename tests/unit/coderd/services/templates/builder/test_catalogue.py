"""The builder's catalogue: what every base and every module has, and that its scripts quote what they are given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coder.coderd.services.templates.builder.catalogue import AGENT, MAIN, BuilderModule, bases, modules
from coder.domain.hcl.parser import parse_file_untrusted
from coder.domain.hcl.tree import HclBlock, TemplateExpression
from coder.domain.rendering.module_scope import ModuleScope, RenderRequest
from coder.domain.rendering.sources import read_source
from tests.kit.paths import DATA, ROOT

HOSTILE = """a'b"c $(touch gone) `touch gone` ; touch gone #\\"""


def recorded(area: str) -> dict[str, dict[str, Any]]:
    """Return the original's bases or modules by id."""
    lines = (DATA / "api" / "recorded" / "exchanges" / "templates.jsonl").read_text().splitlines()
    answers = (json.loads(line) for line in lines if f"templatebuilder/{area}" in line)
    return {item["id"]: item for answer in answers for item in answer["response"]["body"][area]}


def blocks(text: bytes) -> list[HclBlock]:
    return parse_file_untrusted(text.decode(), MAIN).body.blocks


def parameters(files: Any) -> list[str]:
    """Return the names of the parameters that Terraform asks users for."""
    found = [block for block in blocks(files[MAIN]) if block.labels[:1] == ("coder_parameter",)]
    names = [block.body.attributes["name"] for block in found]
    return ["".join(map(str, name.parts)) for name in names if isinstance(name, TemplateExpression)]


@pytest.mark.parametrize("base", bases().values(), ids=lambda base: base.id)
def test_base_has_agent_for_modules(base: Any) -> None:
    agent = next(block for block in blocks(base.files[MAIN]) if block.labels == tuple(AGENT.split(".")))
    assert ("count" in agent.body.attributes) == base.counted and base.os in {"linux", "windows"}
    assert base.prerequisites.startswith("## Prerequisites\n\n") and len(base.prerequisites) > 40
    if base.image:
        assert base.files[MAIN].decode().count(f'"{base.image}"') == 1


def test_original_bases_exist() -> None:
    theirs = recorded("bases")
    assert bases().keys() >= theirs.keys()
    for base_id, base in theirs.items():
        assert bases()[base_id].os == base["os"]


@pytest.mark.parametrize("module", modules().values(), ids=lambda module: module.id)
def test_module_is_complete(module: BuilderModule) -> None:
    names = [block.labels[0] for block in blocks(module.files[MAIN]) if block.type == "variable"]
    assert names[0] == "agent_id" and len(set(names)) == len(names)
    assert all(variable.description for variable in module.variables)
    drawings = {line.split("\t")[0] for line in (ROOT / "coder/dashboard/icons.tsv").read_text().splitlines()}
    assert module.icon.removeprefix("/icon/").removesuffix(".svg") in drawings
    assert module.compatible_os in {("linux",), ("linux", "windows")}
    assert set(module.agreements) <= {item.name for item in module.variables if item.type == "bool"}
    for other in module.conflicts_with:
        assert module.id in modules()[other].conflicts_with
    assert not any(item.sensitive for item in module.variables), "its value would be readable in the template"
    assert not any(block.type == "module" for block in blocks(module.files[MAIN])), "modules stand alone"


@pytest.mark.parametrize("module", [item for item in modules().values() if item.registry], ids=lambda module: module.id)
def test_registry_module_takes_same_variables(module: BuilderModule) -> None:
    """A registry's module replaces ours: names, types and defaults are those of the original's list."""
    theirs = recorded("modules")[module.id]
    assert (module.display_name, module.icon, module.category) == (
        theirs["display_name"],
        theirs["icon"],
        "IDE" if theirs["category"] == "AI Agent" else theirs["category"],
    )
    assert (module.registry, module.registry_version) == (f"coder/{module.id}/coder", theirs["version"])
    assert set(module.conflicts_with) == set(theirs["conflicts_with"])
    known = {item["name"]: (item["type"], item.get("default"), item["required"]) for item in theirs["variables"]}
    for item in module.variables:
        assert (item.type, item.default, item.required) == known[item.name], item.name
    assert {name for name, (_, _, required) in known.items() if required} <= {item.name for item in module.variables}


@pytest.mark.parametrize(
    ("editor", "words"),
    [
        ("antigravity", ['"Antigravity"', '"antigravity://coder.coder-remote/open', '"/icon/antigravity.svg"']),
        ("cursor", ['"Cursor IDE"', '"cursor://coder.coder-remote/open', '"/icon/cursor.svg"']),
        ("kiro", ['"Kiro IDE"', '"kiro://coder.coder-remote/open', '"/icon/kiro.svg"']),
        ("vscode-desktop", ['"VS Code Desktop"', '"vscode://coder.coder-remote/open', '"/icon/code.svg"']),
        ("windsurf", ['"Windsurf Editor"', '"windsurf://coder.coder-remote/open', '"/icon/windsurf.svg"']),
    ],
)
def test_editor_of_shared_text_is_whole(editor: str, words: list[str]) -> None:
    files = {name: data.decode() for name, data in modules()[editor].files.items()}
    assert files.keys() == {"README.md", MAIN}
    assert all(word in files[MAIN] for word in [f'"{editor}"', *words])
    assert words[0].strip('"') in files["README.md"]
    assert not any("EDITOR_" in text for text in files.values()), "a word of the table is missing"


def test_parameters_of_parts_differ() -> None:
    of_modules = Counter(name for module in modules().values() for name in parameters(module.files))
    assert set(of_modules.values()) <= {1}
    for base in bases().values():
        assert not of_modules.keys() & set(parameters(base.files)), base.id


def script(module_id: str, **arguments: Any) -> str:
    """Return the script of a module as the agent gets it."""
    files = modules()[module_id].files
    source = read_source(files)
    scope = ModuleScope(files, source, RenderRequest(), arguments=arguments)
    located = next(source.of("resource", "coder_script"))
    text = scope.evaluate(located.block.body.attributes["script"])
    assert isinstance(text, str)
    return text


def run(text: str, home: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    """Run a script with stubs of programs, each of which prints its arguments, one a line, into a file of its name."""
    for name, body in programs.items():
        stub = home / "bin" / name
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{home}/{name}.txt\n{body}\n")
        stub.chmod(0o755)
    env = {"HOME": str(home), "PATH": f"{home}/bin:{os.environ['PATH']}"}
    return subprocess.run(["sh", "-c", text], env=env, cwd=home, capture_output=True, text=True, check=False)


needs_shell = pytest.mark.skipif(sys.platform == "win32", reason="the scripts are shell")


@needs_shell
def test_clone_quotes_its_values(tmp_path: Path) -> None:
    text = script(
        "git-clone", url=HOSTILE, branch_name=HOSTILE, base_dir="~/src", folder_name="", post_clone_script=None
    )
    done = run(text, tmp_path, git='mkdir -p -- "$5" || true')
    assert (tmp_path / "git.txt").read_text().splitlines()[:4] == ["clone", f"--branch={HOSTILE}", "--", HOSTILE]
    assert not list(tmp_path.rglob("gone")), done.stderr


@needs_shell
def test_clone_runs_once_then_script(tmp_path: Path) -> None:
    values = {"url": "https://git.test/team/app.git", "branch_name": "", "base_dir": "", "folder_name": ""}
    text = script("git-clone", **values, post_clone_script='echo "it\'s $PWD" > after')
    done = run(text, tmp_path, git='mkdir "$4"')
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "app/after").read_text() == f"it's {tmp_path}/app\n"
    again = run(text, tmp_path, git="exit 1")
    assert (again.returncode, again.stdout) == (0, f"{tmp_path}/app exists and is not empty: nothing is cloned.\n")


@needs_shell
def test_dotfiles_quote_their_address(tmp_path: Path) -> None:
    done = run(script("dotfiles", dotfiles_uri=HOSTILE), tmp_path, coder="")
    assert (tmp_path / "coder.txt").read_text().splitlines() == ["dotfiles", "-y", "--", HOSTILE], done.stderr
    (tmp_path / "coder.txt").unlink()
    assert run(script("dotfiles", dotfiles_uri=""), tmp_path).returncode == 0
    assert not (tmp_path / "coder.txt").exists()


@needs_shell
def test_personalize_runs_users_script(tmp_path: Path) -> None:
    text = script("personalize", path="~/my set-up")
    assert "There is no" in run(text, tmp_path).stdout
    (tmp_path / "my set-up").write_text("#!/bin/sh\necho done\n")
    assert run(text, tmp_path).stdout == "done\n"


@needs_shell
@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("code-server", {"install_version": HOSTILE, "port": 1, "offline": True}),
        ("vscode-web", {"telemetry_level": HOSTILE, "port": 1, "offline": True}),
    ],
)
def test_offline_editor_downloads_nothing(module: str, arguments: dict[str, Any], tmp_path: Path) -> None:
    done = run(script(module, **arguments), tmp_path, curl="")
    assert done.returncode == 1 and "forbids the download" in done.stderr
    assert not (tmp_path / "curl.txt").exists() and not list(tmp_path.rglob("gone"))


@needs_shell
def test_code_server_installs_requested_version(tmp_path: Path) -> None:
    text = script("code-server", install_version="4.9.1", port=8080, offline=False)
    (tmp_path / "installer").write_text(f"printf '%s\\n' \"$@\" >{tmp_path}/installer.txt\n")
    done = run(text, tmp_path, curl=f'cp {tmp_path}/installer "$4"')
    assert (tmp_path / "installer.txt").read_text() == "--method=standalone\n--version=4.9.1\n", done.stderr
