// Editors on the user's own machine. Each link carries a session token, created when it is opened.
import { ChevronDown, CodeXml } from "lucide-react";

import { post } from "../../../api/client";
import type { GenerateAPIKeyResponse, Workspace, WorkspaceAgent } from "../../../api/types";
import { Button } from "../../../ui/Button";
import { Menu, MenuItem } from "../../../ui/Menu";
import { toast } from "../../../ui/toast";

const CODE_LIKE: readonly (readonly [
  name: string,
  scheme: string,
  needs: WorkspaceAgent["display_apps"][number],
])[] = [
  ["VS Code", "vscode", "vscode"],
  ["VS Code Insiders", "vscode-insiders", "vscode_insiders"],
  ["Cursor", "cursor", "vscode"],
  ["Windsurf", "windsurf", "vscode"],
];

export function editorAddress(
  scheme: string,
  workspace: Workspace,
  agent: WorkspaceAgent,
  url: string,
  token: string,
): string {
  const query = new URLSearchParams({
    owner: workspace.owner_name,
    workspace: workspace.name,
    url,
    token,
    agent: agent.name,
  });
  const folder = agent.expanded_directory ?? agent.directory;
  if (folder) query.set("folder", folder);
  else query.set("openRecent", "true");
  if (scheme === "jetbrains") {
    const toolbox = new URLSearchParams({
      url,
      token,
      workspace: workspace.name,
      owner: workspace.owner_name,
      agent_id: agent.id,
      ...(folder ? { folder } : {}),
    });
    return `jetbrains://gateway/com.coder.toolbox?${toolbox.toString()}`;
  }
  return `${scheme}://coder.coder-remote/open?${query.toString()}`;
}

export function DesktopLinks({
  workspace,
  agent,
}: {
  workspace: Workspace;
  agent: WorkspaceAgent;
}) {
  const offered = CODE_LIKE.filter(([, , needs]) => agent.display_apps.includes(needs));
  if (offered.length === 0) return null;
  const open = (scheme: string, name: string) =>
    void post<GenerateAPIKeyResponse>("/api/v2/users/me/keys").then(
      ({ key }) =>
        window.location.assign(
          editorAddress(scheme, workspace, agent, window.location.origin, key),
        ),
      (error: unknown) => toast.failed(`Failed to open ${name}`, error),
    );
  const [first] = offered;
  return (
    <span className="inline-flex">
      <Button
        className="rounded-r-none"
        icon={<CodeXml />}
        onClick={() => {
          if (first) open(first[1], first[0]);
        }}
      >
        {first?.[0]} Desktop
      </Button>
      <Menu
        align="start"
        trigger={
          <Button className="-ml-px w-8 rounded-l-none px-0!" aria-label="Other editors">
            <ChevronDown />
          </Button>
        }
      >
        {offered.map(([name, scheme]) => (
          <MenuItem key={scheme} onSelect={() => open(scheme, name)}>
            {name}
          </MenuItem>
        ))}
        <MenuItem
          onSelect={() => open("jetbrains", "JetBrains Toolbox")}
          hint="Requires the Coder plugin of JetBrains Toolbox"
        >
          JetBrains
        </MenuItem>
      </Menu>
    </span>
  );
}
