"""The server that this machine runs as a service: its user, environment and data directory, from its systemd unit.

Only the operator's commands on a database read this (`direct_database.py`). Clients and the server itself never do: a
unit's environment belongs to the process that systemd starts.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
UNITS = tuple(Path(folder) / "coder.service" for folder in _FOLDERS)
"""Locations of the unit, in systemd's order of precedence; the first one counts."""
DATA = Path("/var/lib/coder")
"""Data directory of the packaged service, if its unit names none."""
_DROP_INS = Path("/etc/systemd/system/coder.service.d")


@dataclass(frozen=True, slots=True)
class InstalledService:
    """A service of this machine that runs `coder server`."""

    user: str
    data_dir: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    unreadable: str = ""
    "An environment file that this user may not read, so the settings are incomplete."
    program: str = ""
    "The program that the unit starts; empty if there is no unit."


def find_service() -> InstalledService | None:
    """Return the installed service; None if there is neither a unit nor the package's data directory."""
    for unit in UNITS:
        with contextlib.suppress(OSError):
            texts = [unit.read_text(encoding="utf-8", errors="replace")]
            for drop_in in sorted(_DROP_INS.glob("*.conf")):
                with contextlib.suppress(OSError):
                    texts.append(drop_in.read_text(encoding="utf-8", errors="replace"))
            return _from_unit("\n".join(texts))
    return InstalledService("coder", DATA) if DATA.exists() else None


def _from_unit(text: str) -> InstalledService:
    user, unreadable, program = "root", "", ""
    assigned: dict[str, str] = {}
    files: dict[str, str] = {}
    for key, value in _assignments(text):
        if key == "User":
            user = value
        elif key == "ExecStart":
            program = value.lstrip("@-:+!").partition(" ")[0].strip("\"'")
        elif key == "Environment":
            assigned = assigned | _variables(value) if value else {}
        elif key == "EnvironmentFile":
            try:
                files |= _file_variables(Path(value.removeprefix("-")))
            except FileNotFoundError:
                continue
            except OSError:
                unreadable = value.removeprefix("-")
    environment = assigned | files  # systemd.exec(5): files win over Environment=
    return InstalledService(user, Path(environment.get("CODER_CONFIG_DIR") or DATA), environment, unreadable, program)


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield the assignments of the section Service, with continued lines joined."""
    section = ""
    for line in text.replace("\\\n", " ").splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and not line.startswith(("#", ";")):
            key, _, value = line.partition("=")
            yield key.strip(), value.strip()


def _variables(value: str) -> dict[str, str]:
    with contextlib.suppress(ValueError):  # unbalanced quotes: systemd ignores the line, too
        return dict(word.partition("=")[::2] for word in shlex.split(value) if "=" in word)
    return {}


def _file_variables(path: Path) -> dict[str, str]:
    variables: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if "=" in line and not line.lstrip().startswith(("#", ";")):
            name, _, value = line.strip().partition("=")
            quoted = value[:1] in {"'", '"'}
            variables[name] = _variables(f"x={value}").get("x", value) if quoted else value
    return variables
