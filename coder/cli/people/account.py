"""`coder publickey`: the SSH key that workspaces use for Git hosts."""

from __future__ import annotations

import sys

from coder.api.login.external_auth import GitSSHKey
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.declarations.people.account import PUBLICKEY, PublickeyOptions
from coder.cli.ui.output import confirm
from coder.client.answers import read


@implements(PUBLICKEY)
def _publickey(invocation: Invocation[PublickeyOptions]) -> int:
    client = session.client(invocation)
    if invocation.options.reset:
        question = "Confirm regenerate a new sshkey for your workspaces? This will require updating the key on any"
        confirm(
            invocation.options.yes, f"{question} services it is registered with, like GitHub and GitLab.", default=False
        )
        with add_action_to_errors("regenerate gitsshkey"):
            client.request("PUT", "/api/v2/users/me/gitsshkey")
    with add_action_to_errors("create codersdk client"):
        key = read(client.request("GET", "/api/v2/users/me/gitsshkey"), GitSSHKey)
    sys.stdout.write("This is your public key for using  git  in Coder. All clones with SSH will be authenticated ")
    sys.stdout.write(f"automatically 🪄.\n{key.public_key.strip()}\n\nAdd to GitHub and GitLab:\n")
    sys.stdout.write("> https://github.com/settings/ssh/new\n> https://gitlab.com/-/profile/keys\n")
    return 0
