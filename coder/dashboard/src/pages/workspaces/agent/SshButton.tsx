// Connecting by SSH from a terminal or an editor.
import { useQuery } from "@tanstack/react-query";
import { ChevronDown } from "lucide-react";

import { sshSettings } from "../../../api/queries/workspaces";
import type { Workspace, WorkspaceAgent } from "../../../api/types";
import { useMe } from "../../../features/session/useMe";
import { target } from "../../../features/workspace/workspace-target";
import { Button } from "../../../ui/Button";
import { CodeBox } from "../../../ui/text/CodeBox";
import { Popover } from "../../../ui/Popover";

export function SshButton({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const viewer = useMe().id;
  const settings = useQuery(sshSettings).data;
  const suffix = settings?.hostname_suffix || "coder";
  return (
    <Popover
      label="Connect via SSH"
      className="w-100 p-4"
      trigger={
        <Button variant="quiet">
          Connect via SSH
          <ChevronDown />
        </Button>
      }
    >
      <p className="mb-3 text-sm text-muted">
        Run this once to configure SSH, scp, rsync and your editor for all workspaces:
      </p>
      <CodeBox
        label="Command that configures SSH"
        command="coder config-ssh"
        testId="ssh-configure"
      />
      <p className="my-3 text-sm text-muted">Then connect:</p>
      <CodeBox
        label="Command that connects"
        command={`ssh ${agent.name}.${workspace.name}.${workspace.owner_name}.${suffix}`}
        testId="ssh-connect"
      />
      <p className="my-3 text-sm text-muted">Or connect without configuration:</p>
      <CodeBox
        label="Command that connects with the CLI"
        command={`coder ssh ${target(workspace, agent, viewer)}`}
        testId="ssh-direct"
      />
    </Popover>
  );
}
