"""`coder gitssh` and `coder gitaskpass`: git's authentication helpers inside a workspace.

The agent sets GIT_SSH_COMMAND and GIT_ASKPASS to this program for all its children. git calls an askpass program with
its prompt as the only argument, so `main` recognises such a prompt by its text.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote, urlsplit

from coder.api.login.external_auth import AgentAuth, AgentGitSSHKey
from coder.base.child_env import child_env
from coder.base.errors import CoderError
from coder.base.private_files import open_private
from coder.base.quoted import quoted
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.declarations.agents.credentials import AgentSessionOptions
from coder.cli.declarations.login.git import GITASKPASS, GITSSH
from coder.cli.login.external_auth import agent_client
from coder.cli.ui.output import say
from coder.client.answers import read
from coder.net.errors import HttpError

_QUESTION = re.compile(r"(Username|Password) for '([^']+)': ?")
_OWN_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk", "id_dsa")
_REFUSED = 255
"""Exit code of ssh's own errors; git-shell and others use different codes."""


# ---- ssh


@implements(GITSSH)
def _gitssh(invocation: Invocation[AgentSessionOptions]) -> int:
    """Run ssh with the owner's key and with the keys of the workspace."""
    with add_action_to_errors("get the owner's SSH key"):
        key = read(agent_client(invocation).request("GET", "/api/v2/workspaceagents/me/gitsshkey"), AgentGitSSHKey)
    own = [Path.home() / ".ssh" / name for name in _OWN_KEYS]
    with tempfile.TemporaryDirectory(prefix="coder-gitssh-") as folder:
        path = Path(folder) / "key"
        descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as key_file:
            key_file.write(key.private_key)
        # -i replaces ssh's default list, so add the keys of the workspace.
        identities = [word for item in (path, *own) if item.is_file() for word in ("-i", str(item))]
        try:
            words = ["ssh", *identities, *invocation.args]
            code = subprocess.run(words, env=child_env(), check=False).returncode
        except OSError as error:
            raise CoderError("no_ssh", "ssh cannot be run", "Install an SSH client in the workspace.") from error
    if code == _REFUSED:
        say("\nCoder used the SSH key of this workspace's owner. Unless the server is unreachable, add the public")
        say("key to your account there:\n")
        say(key.public_key.strip() + "\n")
    return code


# ---- names and passwords


@implements(GITASKPASS)
def _askpass(invocation: Invocation[AgentSessionOptions]) -> int:
    """Answer git's prompt; wait while the owner logs in at the provider."""
    question = _QUESTION.fullmatch(invocation.args[0])
    if question is None:
        raise CoderError("question", f"this is not a prompt of git: {quoted(invocation.args[0])}")
    field, url = question[1], _without_user(question[2])
    client = agent_client(invocation)
    path = f"/api/v2/workspaceagents/me/external-auth?match={quote(url, safe='')}"
    try:
        token = read(client.request("GET", path), AgentAuth)
        if token.url:
            say(f"Open the following URL to authenticate with Git:\n\n\t{token.url}\n")
            token = read(client.request("GET", f"{path}&listen"), AgentAuth)
    except HttpError as error:
        if error.status == 404:
            raise CoderError("no_provider", f"Coder has no token provider for {url}; git prompts you itself") from error
        raise
    sys.stdout.write(f"{_answer(token, field)}\n")
    return 0


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _answer(token: AgentAuth, field: str) -> str:
    if field == "Username":
        return token.username or token.access_token
    return token.password or (token.access_token if token.username else "")
