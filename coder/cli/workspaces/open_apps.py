"""`coder open`: opens a workspace in the desktop editor, or one of its apps in the browser."""

from __future__ import annotations

import shutil
import subprocess
import sys
from urllib.parse import urlencode

from coder.api.access.keys import GenerateAPIKeyResponse
from coder.api.agents.agents import WorkspaceAgent, WorkspaceApp
from coder.api.proxies.proxies import Region, RegionsResponse
from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.workspaces.open_apps import APP, VSCODE, OpenAppOptions, OpenVscodeOptions
from coder.cli.ui.output import say
from coder.cli.workspaces.find_workspace import find_workspace
from coder.client.answers import read
from coder.domain.apps.external_addresses import explain_address


def _agent_of(workspace: Workspace, name: str) -> WorkspaceAgent:
    resources = workspace.latest_build.resources
    agents = [agent for resource in resources for agent in resource.agents or ()]
    if not agents:
        raise CoderError("no_agent", f'workspace "{workspace.name}" has no agents', "Is it started?")
    if not name:
        return agents[0]
    match = next((agent for agent in agents if agent.name == name), None)
    if match is None:
        names = ", ".join(agent.name for agent in agents)
        raise CoderError("no_agent", f'agent not found by name "{name}", available agents: [{names}]')
    return match


def _split(name: str) -> tuple[str, str]:
    owner, slash, rest = name.rpartition("/")
    workspace, _, agent = rest.partition(".")
    return f"{owner}{slash}{workspace}", agent


@implements(VSCODE)
def _vscode(invocation: Invocation[OpenVscodeOptions]) -> int:
    client = session.client(invocation)
    name, agent_name = _split(invocation.args[0])
    workspace = find_workspace(client, name)
    agent = _agent_of(workspace, agent_name)
    folder = _folder(agent, invocation.args[1] if len(invocation.args) > 1 else "")
    query = {
        "owner": workspace.owner_name,
        "workspace": workspace.name,
        "agent": agent.name,
        "url": client.policy.url,
        **({"folder": folder} if folder else {}),
    }
    if invocation.options.generate_token:
        query["token"] = read(client.request("POST", "/api/v2/users/me/keys"), GenerateAPIKeyResponse).key
    uri = f"vscode://coder.coder-remote/open?{urlencode(query)}"
    say(f"Opening {workspace.name} in Visual Studio Code Desktop.")
    if invocation.globals.no_open or not _open(uri):
        say("It was not opened here; open this address instead:")
        sys.stdout.write(f"{uri}\n")
    return 0


def _folder(agent: WorkspaceAgent, directory: str) -> str:
    """Return the requested directory, resolved against the agent's; without a request, the agent's."""
    base = agent.expanded_directory or agent.directory or ""
    if not directory:
        return base
    is_absolute = directory.startswith("/") or directory[1:3] == ":\\"
    return directory if is_absolute or not base else f"{base.rstrip('/')}/{directory}"


@implements(APP)
def _app(invocation: Invocation[OpenAppOptions]) -> int:
    client = session.client(invocation)
    name, agent_name = _split(invocation.args[0])
    workspace = find_workspace(client, name)
    agent = _agent_of(workspace, agent_name)
    slugs = [app.slug for app in agent.apps]
    if len(invocation.args) < 2:
        sys.stdout.write("".join(f"{slug}\n" for slug in slugs))
        return 0
    slug = invocation.args[1]
    app = next((app for app in agent.apps if app.slug == slug), None)
    if app is None:
        say(f'ERROR: App "{slug}" not found in workspace "{workspace.name}"!')
        say(f"Available apps: [{' '.join(slugs)}]")
        raise CoderError("no_app", "app not found")
    regions = read(client.request("GET", "/api/v2/regions"), RegionsResponse).regions
    region = _region(regions, invocation.options.region)
    url = _app_url(region, workspace, agent, app)
    # Another user can have written the address, and its handler can run programs and read files.
    if problem := explain_address(url) if app.external else _explain_own_address(url):
        raise CoderError("no_link", f'the address of "{slug}" {problem}: {url}')
    say(f"Opening {url}")
    if not invocation.globals.no_open and not _open(url):
        raise CoderError("no_opener", "no program to open a web page was found", f"Open it yourself: {url}")
    return 0


def _region(regions: list[Region], name: str) -> Region:
    match = next((region for region in regions if region.name == name), None)
    if match is None:
        names = ", ".join(region.name for region in regions)
        raise CoderError("no_region", f'region "{name}" not found', f"Known: {names}")
    return match


def _app_url(region: Region, workspace: Workspace, agent: WorkspaceAgent, app: WorkspaceApp) -> str:
    if app.external:
        return app.url or ""
    base = region.path_app_url.rstrip("/")
    if app.command:
        path = f"/@{workspace.owner_name}/{workspace.name}.{agent.name}/terminal?"
        return f"{base}{path}{urlencode({'command': app.command})}"
    if app.subdomain and app.subdomain_name and region.wildcard_hostname:
        scheme = base.partition("://")[0]
        return f"{scheme}://{region.wildcard_hostname.replace('*', app.subdomain_name, 1)}/"
    return f"{base}/@{workspace.owner_name}/{workspace.name}.{agent.name}/apps/{app.slug}/"


def _explain_own_address(url: str) -> str:
    """Return why the server's address of an application is none of a page; "" when it is."""
    return "" if url.startswith(("http://", "https://")) else "must be of the scheme http or https"


def _open(address: str) -> bool:
    """Open an address on the desktop. Return False without a desktop."""
    opener = {"darwin": ["open"], "win32": ["rundll32", "url.dll,FileProtocolHandler"]}.get(sys.platform, ["xdg-open"])
    if shutil.which(opener[0]) is None:
        return False
    return subprocess.run([*opener, address], check=False, capture_output=True).returncode == 0
