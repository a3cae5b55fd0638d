"""The modules for POSIX systems and Windows have the same names with the same parameters."""

from __future__ import annotations

import ast
from pathlib import Path

import coder.agent.platform as platform

FOLDER = Path(platform.__file__).parent


def interface(name: str) -> dict[str, list[str]]:
    """Public functions with the names of their parameters, and public constants."""
    found: dict[str, list[str]] = {}
    for node in ast.parse((FOLDER / f"{name}.py").read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            found[node.name] = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = []
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                found |= {each.id: [] for each in names if isinstance(each, ast.Name)}
    return {each: parameters for each, parameters in found.items() if not each.startswith("_")}


def used_names() -> set[str]:
    """What the agent and the command line ask of `system`."""
    names = set()
    for path in [*FOLDER.parent.rglob("*.py"), *(FOLDER.parent.parent / "cli/agents").glob("*.py")]:
        text = path.read_text()
        if "coder.agent.platform import system" in text:
            names |= {
                node.attr
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "system"
            }
    return names


def test_systems_share_functions() -> None:
    posix, windows = interface("posix"), interface("windows")
    shared = {name: parameters for name, parameters in posix.items() if name in windows}
    assert {name: windows[name] for name in shared} == shared
    assert [name for name in posix if name.islower() and name not in windows] == []
    assert [name for name in windows if name.islower() and name not in posix] == []


def test_used_names_exist_everywhere() -> None:
    used = used_names()
    assert {"START", "wait_for_child", "spawn_terminal", "sftp_path"} <= used
    for name in ("posix", "windows"):
        assert used - set(interface(name)) == set(), name


def test_no_service_asks_for_system() -> None:
    asking = [
        path.relative_to(FOLDER.parent).as_posix()
        for path in FOLDER.parent.rglob("*.py")
        if path.parent != FOLDER and any(word in path.read_text() for word in ("sys.platform", "os.name"))
    ]
    assert asking == []


STARTS = {"open_process", "run_process", "Popen", "create_subprocess_exec"}


def starts_without_flags(text: str) -> list[int]:
    """Lines that start a process without the platform's arguments: on Windows a window would flash."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in STARTS
        and not any(each.arg is None and ast.unparse(each.value) == "system.START" for each in node.keywords)
    ]


def test_no_process_starts_with_window() -> None:
    assert starts_without_flags("trio.run_process(argv)\ntrio.run_process(argv, **system.START)") == [1]
    found = {
        path.relative_to(FOLDER.parent).as_posix(): lines
        for path in FOLDER.parent.rglob("*.py")
        if path.parent != FOLDER and (lines := starts_without_flags(path.read_text()))
    }
    assert found == {}
