"""Tries against a server of several processes, each judged (`target.py`): all of them as a soak test, and a sample.

The sample plays every table's first tries on the parsers of one process, without a server of its own.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest

from coder.coderd.services.foundation.sandbox import TooMuchWorkError
from coder.provisionerd.terraform import template
from tests.attacks import content_tries, handover_tries, http_tries, stream_tries, tls_tries
from tests.attacks.local_judge import CONTROL, local_run, local_tries
from tests.attacks.sandbox_tries import JSON_TEMPLATES, TEMPLATES
from tests.attacks.target import Judge, attacked
from tests.attacks.tries import Carrier, WireTry
from tests.unit.coderd.services.foundation.test_sandbox import BASE, MORE, SHOWN, documents, opened

TABLES = (http_tries, tls_tries, handover_tries, content_tries, stream_tries)
WIRE: list[WireTry] = [item for table in TABLES for item in table.TRIES]
AS_UPSTREAM = {"field: 1,000 notification preferences"}
"""Refused with the original's status 500."""
MOST_READING = 5.0
"""Seconds of CPU time: ten times what the largest takes, and half of what a heartbeat may be late."""
FILES = (("main.tf", TEMPLATES), ("main.tf.json", JSON_TEMPLATES))
SYNTAXES = ("native", "json")
EVERY = 40
"""One of so many tries is in the sample."""


def test_kinds_have_names_of_their_own() -> None:
    names = [(item.process, item.name) for item in WIRE]
    assert len(set(names)) == len(names) > 800
    steps = {(item.carrier, item.steps) for item in WIRE}
    assert len(steps) >= len(WIRE) - 5, "a kind is not the same bytes under another name"


def _faults(judge: Judge) -> list[str]:
    return [
        f"{item.process}: {item.name}: {fault}"
        for item in judge.verdicts
        for fault in item.faults
        if not (item.name in AS_UPSTREAM and fault.startswith("status 500"))
    ]


@pytest.mark.soak
@pytest.mark.timeout(2400)
@pytest.mark.parametrize(("processes", "carrier"), [(2, "tcp"), (1, "tls")])
def test_no_try_disturbs_another_user(processes: int, carrier: Carrier, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with attacked(tmp_path, processes=processes) as target:
        judge = Judge(target, carrier)
        for table in TABLES:
            judge.run(table.TRIES)
        assert not _faults(judge), "\n".join(_faults(judge))
        before = target.processes()
        assert local_run(target, local_tries(target)) == [CONTROL]
        assert target.processes() == before


@pytest.mark.soak
@pytest.mark.parametrize(("file", "templates"), FILES, ids=SYNTAXES)
async def test_no_template_leaves_the_sandbox(file: str, templates: dict[str, str]) -> None:
    await _evaluate(file, dict(templates))


async def test_sample_of_templates_stays_in_sandbox() -> None:
    for file, templates in FILES:
        await _evaluate(file, dict(list(templates.items())[::EVERY]))


async def _evaluate(file: str, templates: dict[str, str]) -> None:
    """Each gets a result or a refusal that blames the text; the plain template after it gets its result."""
    plain = documents("plain", {"main.tf": SHOWN % '"graz"'})
    async with opened() as box:
        for name, content in templates.items():
            for call in ("form", "version"):
                try:
                    result = await box.call(call, {**BASE, **MORE[call]}, documents(name, {file: content}))
                except TooMuchWorkError as error:
                    assert "more" in error.message, name
                else:
                    assert "root:x:" not in repr(result), name
            view = await box.call("form", {**BASE, **MORE["form"]}, plain)
            assert view["parameters"][0]["value"]["value"] == "graz", name  # type: ignore[index,call-overload]


@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("file", "templates"), [("main.tf", TEMPLATES), ("main.tf.json", JSON_TEMPLATES)], ids=SYNTAXES
)
def test_templates_are_read_by_daemons(file: str, templates: dict[str, str], every: int, tmp_path: Path) -> None:
    """A built-in daemon reads them in a process of the server: a template or one error, in bounded time."""
    for number, (name, content) in enumerate(list(templates.items())[::every]):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / file).write_text(content)
        began = time.process_time()
        with contextlib.suppress(template.TemplateError):
            found = template.read_template(folder)
            template.variables(found)
            template.workspace_tags(found)
            template.needs_init(found)
        assert time.process_time() - began < MOST_READING, name
