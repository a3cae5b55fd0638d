"""Every SSH client people use against the agent's server. A cell whose program is missing is skipped."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
import trio_asyncio

from coder.agent.ssh.server import SshService
from coder.agent.state import AgentState
from coder.agent.workspace.environment import find_identity
from coder.rpc.proto import agent_pb2
from tests.kit.agents.scripted_agent import eventually

OPENSSH = "ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -F none"
PARAMIKO = """
import paramiko, socket
transport = paramiko.Transport(socket.create_connection(("127.0.0.1", {port})))
transport.start_client(); transport.auth_none("u")
channel = transport.open_session(); channel.exec_command("cat source; exit 7")
assert channel.makefile().read() == open("{there}/source", "rb").read() and channel.recv_exit_status() == 7
sftp = paramiko.SFTPClient.from_transport(transport)
sftp.get("source", "{here}/got"); sftp.put("{here}/got", "put"); transport.close()
"""
ASYNCSSH = """
import asyncio, asyncssh
how = dict(username="u", known_hosts=None, config=None, client_keys=None)
async def main():
    async with asyncssh.connect("127.0.0.1", {port}, **how) as c:
        assert (await c.run("exit 7")).exit_status == 7
        async with c.start_sftp_client() as sftp:
            await sftp.get("source", "{here}/got"); await sftp.put("{here}/got", "put")
asyncio.run(main())
"""
EMPTY_USER = """
import asyncio, asyncssh
async def main():
    async with asyncssh.connect("127.0.0.1", {port}, username="", known_hosts=None, config=None, client_keys=None) as c:
        assert (await c.run("cat source > put; exit 7")).exit_status == 7
    open("{here}/got", "wb").write(open("{there}/source", "rb").read())
asyncio.run(main())
"""


@dataclass(frozen=True)
class Cell:
    """`script` fetches `source` as HERE/got and sends it as THERE/put; a shell's, or Python's where it begins so."""

    name: str
    script: str
    programs: tuple[str, ...] = ()
    module: str = ""


def _ends_with_7(client: str) -> str:
    """A shell's words: the client ends with the code of what it ran, and not with success either."""
    return f"code=0; {client} 'exit 7' || code=$?; test $code = 7"


CELLS = (
    Cell(
        "OpenSSH",
        f"{OPENSSH} -p $PORT u@127.0.0.1 'cat source' > $HERE/got; "
        f"{OPENSSH} -p $PORT u@127.0.0.1 'cat > put' < $HERE/got; " + _ends_with_7(f"{OPENSSH} -p $PORT u@127.0.0.1"),
        ("ssh",),
    ),
    Cell(
        "rsync",
        f'rsync -a -e "{OPENSSH} -p $PORT" u@127.0.0.1:source $HERE/got; '
        f'rsync -a -e "{OPENSSH} -p $PORT" $HERE/got u@127.0.0.1:put',
        ("ssh", "rsync"),
    ),
    Cell(
        "git",
        f'cd $HERE; export GIT_SSH_COMMAND="{OPENSSH}"; git init -q work; cp $THERE/source work/got; '
        "cd work; git add got; git -c user.name=n -c user.email=e@x commit -qm one; "
        "git init -q --bare $THERE/repo; git push -q ssh://u@127.0.0.1:$PORT$THERE/repo HEAD:main; "
        "git clone -q -b main ssh://u@127.0.0.1:$PORT$THERE/repo $HERE/clone; cp $HERE/clone/got $HERE/got; "
        "cp $HERE/got $THERE/put",
        ("ssh", "git"),
    ),
    Cell(
        "plink",
        "plink -batch -hostkey $HOSTKEY -P $PORT u@127.0.0.1 'cat source' > $HERE/got; "
        "plink -batch -hostkey $HOSTKEY -P $PORT u@127.0.0.1 'cat > put' < $HERE/got; "
        + _ends_with_7("plink -batch -hostkey $HOSTKEY -P $PORT u@127.0.0.1"),
        ("plink", "ssh-keyscan"),
    ),
    Cell(
        "psftp",
        "printf 'get source %s/got\\nput %s/got put\\n' $HERE $HERE > $HERE/batch; "
        "psftp -batch -hostkey $HOSTKEY -P $PORT -b $HERE/batch u@127.0.0.1",
        ("psftp", "ssh-keyscan"),
    ),
    Cell(
        "dbclient",
        "dbclient -y -y -p $PORT u@127.0.0.1 'cat source' > $HERE/got; "
        "dbclient -y -y -p $PORT u@127.0.0.1 'cat > put' < $HERE/got; "
        + _ends_with_7("dbclient -y -y -p $PORT u@127.0.0.1"),
        ("dbclient",),
    ),
    Cell(
        "rclone",
        "export R=:sftp,host=127.0.0.1,user=u,pass=$(rclone obscure x),port=$PORT,shell_type=none:; "
        "rclone copyto ${R}source $HERE/got; rclone copyto $HERE/got ${R}put",
        ("rclone",),
    ),
    Cell("paramiko", PARAMIKO, module="paramiko"),
    Cell("asyncssh", ASYNCSSH, module="asyncssh"),
    Cell("an empty user name", EMPTY_USER, module="asyncssh"),
    Cell(
        "sshfs",
        f'mkdir $HERE/m; sshfs -p $PORT -o ssh_command="{OPENSSH}" u@127.0.0.1:. $HERE/m; '
        "cp $HERE/m/source $HERE/got; cp $HERE/got $HERE/m/put; fusermount -u $HERE/m",
        ("ssh", "sshfs", "fusermount"),
    ),
    Cell(
        "lftp",
        f'lftp -e "set sftp:connect-program {OPENSSH} -a -x; set net:max-retries 1; '
        'open -u u,x -p $PORT sftp://127.0.0.1; get source -o $HERE/got; put $HERE/got -o put; bye"',
        ("ssh", "lftp"),
    ),
)


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[int, AgentState]]:
    monkeypatch.setenv("HOME", str(tmp_path))  # without startup files of the developer's shell
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    state.manifest = agent_pb2.Manifest(workspace_name="w")
    state.directory = tmp_path / "there"
    state.directory.mkdir()
    async with trio_asyncio.open_loop(), trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, SshService(state).serve, 0)
        yield listeners[0].socket.getsockname()[1], state
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
async def test_a_file_goes_both_ways(cell: Cell, server: tuple[int, AgentState], tmp_path: Path) -> None:
    port, state = server
    missing = [name for name in cell.programs if shutil.which(name) is None]
    if cell.module and importlib.util.find_spec(cell.module) is None:
        missing.append(cell.module)
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if cell.name == "sshfs" and not os.access("/dev/fuse", os.W_OK):
        pytest.skip("there is no /dev/fuse here")
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    source = there / "source"
    source.write_bytes(os.urandom(2 << 20))
    env = {**os.environ, "PORT": str(port), "HERE": str(here), "THERE": str(there), "HOME": str(here)}
    if "ssh-keyscan" in cell.programs:
        env["HOSTKEY"] = await _fingerprint(port)
    if cell.module:
        argv = [sys.executable, "-c", cell.script.format(port=port, here=here, there=there)]
    else:
        argv = ["sh", "-ec", cell.script]
    with trio.fail_after(120):
        done = await trio.run_process(argv, env=env, capture_stdout=True, capture_stderr=True, check=False, stdin=b"")
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert (here / "got").read_bytes() == source.read_bytes()

    async def left() -> bool:
        return not state.sessions["ssh"]

    # Whoever unmounts does not wait for the program behind the mount: it closes files and session by itself.
    await eventually(left)
    assert (there / "put").read_bytes() == source.read_bytes()


async def _fingerprint(port: int) -> str:
    """As PuTTY's programs take it."""
    words = f"ssh-keyscan -p {port} 127.0.0.1 2>/dev/null | ssh-keygen -lf - | head -1"
    done = await trio.run_process(["sh", "-c", words], capture_stdout=True)
    return done.stdout.decode().split()[1]
