"""First steps of a new user with the product's own commands; see scripts/quickstart."""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import signal
import socket
import string
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

TEMPLATES = ("externally-managed-workspace", "local-process")
WORKSPACE = "hello-world"
SERVER_WAIT = 60.0
AGENT_WAIT = 60.0


class StepFailedError(Exception):
    """Failed step; the message names it and the reason."""


class Walk:
    """Steps of the quickstart, each with one line of progress."""

    def __init__(self, binary: Path, data: Path, address: str) -> None:
        self.binary, self.data = binary, data
        self.url = f"http://{address}"
        self.address = address
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CODER_")},
            "CODER_CONFIG_DIR": str(data),
            "CODER_NO_VERSION_WARNING": "true",
        }

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        began = time.monotonic()
        print(f"  {text} …", end="", flush=True)
        try:
            yield
        except BaseException:
            print(" failed")
            raise
        print(f" done ({time.monotonic() - began:.1f} s)")

    def coder(self, *args: str, check: bool = True, **extra: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.binary), *args]
        done = subprocess.run(
            command, env={**self.env, **extra}, text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False
        )
        if check and done.returncode != 0:
            output = f"{done.stdout}{done.stderr}"
            raise StepFailedError(f"coder {' '.join(args)} ended with code {done.returncode}:\n{output}")
        return done

    # ---- steps

    def start_server(self, stack: ExitStack) -> None:
        log = self.data / "server.log"
        self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        with log.open("ab") as log_file:
            server = subprocess.Popen(
                [
                    str(self.binary),
                    "server",
                    "--http-address",
                    self.address,
                    "--access-url",
                    self.url,
                    "--derp-server-stun-addresses",
                    "disable",  # everything runs on this machine
                ],
                env=self.env,
                stdout=log_file,
                stderr=log_file,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        stack.callback(stop, server, "server")
        wait_until(lambda: healthy(self.url), SERVER_WAIT, server, f"the server did not answer; its log is {log}")

    def first_admin(self) -> None:
        """Create the owner of a new deployment, or reuse the session of an existing one."""
        if self.coder("whoami", check=False).returncode == 0:
            return
        environment = os.environ
        email = environment.get("CODER_FIRST_USER_EMAIL", "admin@example.com")
        username = environment.get("CODER_FIRST_USER_USERNAME", "admin")
        password = environment.get("CODER_FIRST_USER_PASSWORD", "")
        if exists_first_user(self.url):
            if not password:
                raise StepFailedError(
                    "this deployment has its first user already and no saved session; set CODER_FIRST_USER_EMAIL and "
                    "CODER_FIRST_USER_PASSWORD to sign in"
                )
            token = sign_in(self.url, email, password)
            self.coder("login", self.url, "--token", token)
            return
        generated = not password
        password = password or generate_password()
        self.coder(
            "login",
            self.url,
            CODER_FIRST_USER_EMAIL=email,
            CODER_FIRST_USER_USERNAME=username,
            CODER_FIRST_USER_FULL_NAME="",
            CODER_FIRST_USER_PASSWORD=password,
            CODER_FIRST_USER_TRIAL="false",
        )
        if generated:
            print(f"\n\n    first administrator: {email}\n    password:            {password}   (shown only now)\n")

    def push_templates(self) -> None:
        known = {row["Template"]["name"] for row in json.loads(self.coder("templates", "list", "-o", "json").stdout)}
        for name in TEMPLATES:
            if name in known:
                continue
            with tempfile.TemporaryDirectory() as folder:
                target = Path(folder) / name
                self.coder("templates", "init", "--id", name, str(target))
                self.coder("templates", "push", name, "-d", str(target), "-y", "--ignore-lockfile")

    def create_workspace(self) -> None:
        if self.coder("show", WORKSPACE, check=False).returncode != 0:
            self.coder("external-workspaces", "create", WORKSPACE, f"--template={TEMPLATES[0]}", "-y")

    def attach(self, stack: ExitStack) -> None:
        """Run the command that the product prints for this machine."""
        printed = self.coder("external-workspaces", "agent-instructions", WORKSPACE, "--output=json")
        line = json.loads(printed.stdout)["init_script"]
        home = self.data / "attached-machine"
        home.mkdir(mode=0o700, exist_ok=True)
        log = home / "agent.log"
        env = {name: value for name, value in os.environ.items() if not name.startswith("CODER_")}
        with log.open("ab") as log_file:
            agent = subprocess.Popen(
                ["sh", "-c", line],
                env={**env, "CODER_AGENT_LOG_DIR": str(home)},
                cwd=home,
                stdout=log_file,
                stderr=log_file,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        stack.callback(stop, agent, "agent")
        wait_until(self.connected, AGENT_WAIT, agent, f"the agent did not connect; its log is {log}")

    def connected(self) -> bool:
        rows = json.loads(self.coder("list", "-o", "json").stdout)
        agents = [
            agent
            for row in rows
            if row["name"] == WORKSPACE
            for resource in row["latest_build"]["resources"]
            for agent in resource.get("agents") or []
        ]
        return bool(agents) and all(agent["status"] == "connected" for agent in agents)

    def shell(self) -> str:
        done = self.coder("ssh", WORKSPACE, "uname", "-a")
        return done.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="shut everything down at the end")
    parser.add_argument("--data-dir", type=Path, default=Path.home() / ".config" / "coderv2")
    parser.add_argument("--http-address", default="127.0.0.1:3000")
    program = parser.add_mutually_exclusive_group(required=True)
    program.add_argument("--binary-dir", type=Path, help="where build/build.py put the program for this machine")
    program.add_argument("--binary", type=Path, help="the program itself")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    binary = args.binary.absolute() if args.binary else find_binary(args.binary_dir)
    walk = Walk(binary, args.data_dir.expanduser().absolute(), free_address(args.http_address))
    print("Coder quickstart")
    try:
        with ExitStack() as stack:
            run(walk, stack, once=args.once)
    except StepFailedError as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nShut down.")
    return 0


def run(walk: Walk, stack: ExitStack, *, once: bool) -> None:
    with walk.step("starting the server with its own Postgres"):
        walk.start_server(stack)
    with walk.step("first administrator"):
        walk.first_admin()
    with walk.step(f"templates {', '.join(TEMPLATES)}"):
        walk.push_templates()
    with walk.step(f"external workspace {WORKSPACE}"):
        walk.create_workspace()
    with walk.step("attaching this machine (curl … | sh)"):
        walk.attach(stack)
    with walk.step(f"coder ssh {WORKSPACE} uname -a"):
        output = walk.shell()
    print(f"\n    {output}\n")
    print(
        f"Dashboard:   {walk.url}/@{json.loads(walk.coder('whoami', '-o', 'json').stdout)[0]['username']}/{WORKSPACE}"
    )
    if once:
        print("Shutting down (--once) …")
        return
    name = walk.binary
    print(f"""Next steps:
  export CODER_CONFIG_DIR={walk.data}
  {name} ssh {WORKSPACE}                                  a shell
  {name} config-ssh && ssh {WORKSPACE}.coder              the same by plain ssh, scp, your IDE
  {name} create mine --template=local-process             a workspace made by Terraform on this machine
Press Ctrl-C to stop.""")
    while True:
        time.sleep(3600)


# ---- helpers


def find_binary(folder: Path) -> Path:
    machine = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), platform.machine())
    return folder / f"coder-{sys.platform}-{machine}"


def free_address(requested: str) -> str:
    """Return the requested address, or the same host with a free port if the port is in use."""
    host, _, port = requested.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
            return requested
        except OSError:
            pass
    with socket.socket() as probe:
        probe.bind((host, 0))
        chosen = f"{host}:{probe.getsockname()[1]}"
    print(f"note: {requested} is in use; listening on {chosen} instead")
    return chosen


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def exists_first_user(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/api/v2/users/first", timeout=10):
            return True
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return False
        raise StepFailedError(f"the server answered with status {error.code}") from error


def sign_in(url: str, email: str, password: str) -> str:
    body = json.dumps({"email": email, "password": password}).encode()
    request = urllib.request.Request(f"{url}/api/v2/users/login", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(json.load(answer)["session_token"])
    except urllib.error.HTTPError as error:
        raise StepFailedError("the given e-mail and password were not accepted") from error


def generate_password() -> str:
    letters = string.ascii_letters + string.digits
    return "-".join("".join(secrets.choice(letters) for _ in range(5)) for _ in range(4))


def wait_until(check: Callable[[], bool], limit: float, process: subprocess.Popen[bytes], problem: str) -> None:
    deadline = time.monotonic() + limit
    while not check():
        if process.poll() is not None or time.monotonic() > deadline:
            raise StepFailedError(problem)
        time.sleep(0.1)


def stop(process: subprocess.Popen[bytes], name: str) -> None:
    """Stop a process group, first with SIGTERM, and wait until it has exited."""
    for number, patience in ((signal.SIGTERM, 20.0), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + patience
        try:
            os.killpg(process.pid, number)
            while time.monotonic() < deadline:
                process.poll()
                os.killpg(process.pid, 0)
                time.sleep(0.05)
        except ProcessLookupError:
            return
        print(f"note: the {name} does not end; killing it")


if __name__ == "__main__":
    raise SystemExit(main())
