"""The launcher when the system fails it: at each of its calls it gets an error, or is killed, once; and when the clock
is wrong. Whatever happens, there is one line, and the next start works."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.kit.programs.single_binary import NEEDS, Parts, compiled, environment, listed, packing, payloads, run

pytestmark = pytest.mark.skipif(not NEEDS, reason="gcc, zstd and zstd's headers are needed")
ERRORS = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EMFILE)
AGENT = "agent"
"No command server is asked for it."


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    work = tmp_path_factory.mktemp("faulty")
    return Parts(compiled(work, faulty=True), *payloads(work, 100_000))


@pytest.fixture
def both(tmp_path: Path, faulty: Parts) -> tuple[Path, Path]:
    """The full and the slim program."""
    packing.write(tmp_path / "coder-full", faulty.full_program())
    packing.write(tmp_path / "coder-slim", faulty.slim_program())
    return tmp_path / "coder-full", tmp_path / "coder-slim"


def start(program: Path, place: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return run(program, AGENT, CODER_BINARY_CACHE=str(place), **env)


def calls_of(program: Path, place: Path) -> int:
    return int(start(program, place, FAULT_COUNT="1").stderr)


def works(program: Path) -> str:
    return f"{program.name.removeprefix('coder-')} {program} {AGENT}\n"


def prepare(place: Path) -> None:
    """What gives the launcher something to tidy up."""
    for name in (".new-killed", "d" * 32):
        (place / name / "_internal").mkdir(parents=True)
        (place / name / ".lock").touch()
        os.utime(place / name, (10**9, 10**9))
    place.chmod(0o700)


@pytest.mark.parametrize("what", [0, *ERRORS], ids=["killed", *(errno.errorcode[code] for code in ERRORS)])
def test_at_each_call(what: int, both: tuple[Path, Path], tmp_path: Path) -> None:
    program, other = both
    prepare(tmp_path / "count")
    calls = calls_of(program, tmp_path / "count")
    assert calls > 60, "not every call is seen"
    failed = 0
    for at in range(1, calls + 1):
        place = tmp_path / str(at)
        prepare(place)
        done = start(program, place, FAULT_AT=str(at), FAULT_ERRNO=str(what))
        if what == 0:
            assert done.returncode == -signal.SIGKILL and not done.stderr, (at, done)
        elif done.returncode == 0:
            assert done.stdout == works(program) and not done.stderr, (at, done)
        else:
            failed += 1
            assert done.returncode == 127 and done.stderr.startswith("coder: "), (at, done)
            assert done.stderr.count("\n") == 1 and not done.stdout, (at, done)
        again = start(program, place)
        assert (again.stdout, again.stderr) == (works(program), ""), (at, done, again)
        # Whatever is left goes with the next first start.
        assert start(other, place).stdout == works(other)
        assert len(listed(place)) == 2 and not [name for name in listed(place) if name[0] == "."], (at, listed(place))
    assert what == 0 or calls // 4 < failed < calls, "some errors matter, others do not"


def test_kill_during_concurrent_starts(both: tuple[Path, Path], tmp_path: Path) -> None:
    prepare(tmp_path / "count")
    calls = calls_of(both[0], tmp_path / "count")
    for at in range(1, calls + 1, 3):
        place = tmp_path / str(at)
        prepare(place)
        env = environment(both[0], {"CODER_BINARY_CACHE": str(place)})
        programs = [both[0], *both, *both]
        started = [
            subprocess.Popen(
                [program, AGENT], env=env | ({"FAULT_AT": str(at)} if number == 0 else {}), stdout=subprocess.PIPE
            )
            for number, program in enumerate(programs)
        ]
        _, *said = [process.communicate()[0].decode() for process in started]
        assert said == [works(program) for program in programs[1:]], at


def test_the_clock_of_1970(both: tuple[Path, Path], tmp_path: Path) -> None:
    """A machine without a battery starts there: nothing is taken for old or from the future. When the clock is set, a
    version that runs is not taken away, and one that does not is made again."""
    program, other = both
    place = tmp_path / "cache"
    prepare(place)
    os.utime(place / ("d" * 32), (2**31, 2**31))
    assert start(program, place, FAULT_TIME="0").stdout == works(program)
    assert "d" * 32 in listed(place) and ".new-killed" not in listed(place)
    (made,) = (folder for folder in place.glob("*/") if (folder / "coder").exists())
    os.utime(made, (0, 0))
    assert start(other, place).stdout == works(other) and not made.exists()
    assert start(program, place).stdout == works(program)
