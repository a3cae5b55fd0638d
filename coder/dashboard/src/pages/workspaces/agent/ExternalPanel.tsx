// Attaching the machine: choose its platform, copy one command, run it there.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { RotateCw } from "lucide-react";
import { useState } from "react";

import { post, seg } from "../../../api/client";
import { setServerData } from "../../../api/optimistic";
import { useMissingProgram } from "../../../api/queries/programs";
import { externalCredentials } from "../../../api/queries/workspaces";
import type { ExternalAgentCredentials, Workspace, WorkspaceAgent } from "../../../api/types";
import { Button } from "../../../ui/Button";
import { RunHint } from "./RunHint";
import { CodeBox } from "../../../ui/text/CodeBox";
import { WithCode } from "../../../ui/text/WithCode";
import { Confirm } from "../../../ui/Confirm";
import { Failure } from "../../../ui/Failure";
import { Checkbox } from "../../../ui/forms/Toggle";
import { SelectField } from "../../../ui/forms/Field";
import { Skeleton } from "../../../ui/Loading";
import { Notice } from "../../../ui/Notice";
import { toast } from "../../../ui/toast";
import { keyOf, nameOf, PLATFORMS } from "../../../lib/platforms";

export function ExternalPanel({
  workspace,
  agent,
}: {
  workspace: Workspace;
  agent: WorkspaceAgent;
}) {
  const own = `${agent.operating_system}/${agent.architecture}`;
  const [platform, setPlatform] = useState(
    PLATFORMS.some((item) => keyOf(item) === own) ? own : "linux/amd64",
  );
  const credentials = useQuery(externalCredentials(workspace.id, agent.name));
  const missing = useMissingProgram();
  const missingProgram = missing(platform);
  return (
    <div className="flex flex-col gap-3">
      <p>
        Please run the following command to attach an agent to the <strong>{workspace.name}</strong>{" "}
        workspace:
      </p>
      <div className="max-w-96">
        <SelectField
          label="Platform"
          value={platform}
          onChange={setPlatform}
          data-testid="platform"
          options={PLATFORMS.map(
            (item) =>
              [
                keyOf(item),
                missing(keyOf(item)) ? `${nameOf(item)} (program missing)` : nameOf(item),
              ] as const,
          )}
        />
      </div>
      {missingProgram ? (
        <Notice kind="warning" title="This server has no program for this platform">
          {platform.startsWith("windows") ? (
            <p>
              The command keeps retrying until the server has the program. Alternatively, run the
              Linux command inside WSL.
            </p>
          ) : (
            <p>
              The command only works if <code>coder</code> is already installed on the machine, for
              example with <code>pipx install FILE.whl</code>. Otherwise it keeps retrying until the
              server has the program.
            </p>
          )}
          <p>
            For administrators: <WithCode text={missingProgram.remedy} />
          </p>
        </Notice>
      ) : null}
      {credentials.isPending ? <Skeleton className="h-11 w-full" /> : null}
      {credentials.isError ? (
        <Failure error={credentials.error} retry={() => void credentials.refetch()} />
      ) : null}
      {credentials.data ? (
        <CodeBox
          label="Command that attaches the machine"
          command={commandFor(credentials.data.command, credentials.data.agent_token, platform)}
        />
      ) : null}
      {credentials.data ? <RotateToken workspace={workspace} agent={agent} /> : null}
      <RunHint command={credentials.data?.command} />
      {credentials.data && !platform.startsWith("windows") ? (
        <ServiceCommand
          workspace={workspace}
          command={credentials.data.command}
          token={credentials.data.agent_token}
          platform={platform}
          programMissing={missingProgram !== undefined}
        />
      ) : null}
    </div>
  );
}

/**
 * The agent as a system service: users who run the command above by hand would not learn of it
 * otherwise. Not on Windows, which has no such service.
 */
function ServiceCommand({
  workspace,
  command,
  token,
  platform,
  programMissing,
}: {
  workspace: Workspace;
  command: string;
  token: string;
  platform: string;
  programMissing: boolean;
}) {
  const [open, setOpen] = useState(false); // rendered only when open: other programs locate the command above as the only one
  const [systemWide, setSystemWide] = useState(false);
  const line = installCommand(command, token, platform, { programMissing, systemWide });
  if (line === null) return null;
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="font-medium">Keep attached after a reboot</summary>
      {open ? (
        <div className="mt-2 flex flex-col gap-3">
          <p className="text-muted">
            <code>coder agent install</code> installs the agent as a service that starts with the
            machine and restarts automatically. Run it instead of the command above; if that one is
            still running, stop it first.
          </p>
          <CodeBox
            label={`Command that keeps ${workspace.name} attached`}
            command={line}
            testId="install-command"
          />
          <Checkbox
            label="Install system-wide"
            hint="The install command uses sudo. If off, it installs the agent for your user only."
            checked={systemWide}
            onChange={setSystemWide}
          />
          <p className="text-sm text-muted">
            Run it again after you rotate the token. <code>coder agent uninstall</code> removes the
            service.
          </p>
        </div>
      ) : null}
    </details>
  );
}

/** Panel of an attached machine: the command and its token are fetched only when the user opens it. */
export function Reattach({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="text-sm text-muted">Reattach the machine or rotate its token</summary>
      {open ? (
        <div className="mt-2">
          <ExternalPanel workspace={workspace} agent={agent} />
        </div>
      ) : null}
    </details>
  );
}

/** A new token for the machine. The current token stays valid until the new one is used. */
function RotateToken({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const queries = useQueryClient();
  const [confirming, setConfirming] = useState(false);
  const rotate = async () => {
    const rotated = await post<ExternalAgentCredentials>(
      `/api/v2/workspaces/${workspace.id}/external-agent/${seg(agent.name)}/rotate-token`,
    );
    setServerData(queries, externalCredentials(workspace.id, agent.name).queryKey, {
      command: rotated.command,
      agent_token: rotated.agent_token,
    });
    toast.done(
      "Token rotated.",
      "Run the command above on the machine. The old token is then revoked.",
    );
  };
  return (
    <div>
      <Button size="sm" icon={<RotateCw />} onClick={() => setConfirming(true)}>
        Rotate token
      </Button>
      <Confirm
        open={confirming}
        onClose={() => setConfirming(false)}
        title={`Rotate the token of ${agent.name}?`}
        confirm="Rotate token"
        danger={false}
        onConfirm={rotate}
      >
        <p>
          Rotate the token if it may have leaked. The machine stays connected: the old token works
          until the new one is first used, and is then revoked.
        </p>
      </Confirm>
    </div>
  );
}

/**
 * Download the binary, let it install its service (it keeps a copy of itself) and remove the
 * download. Uses the installed binary if the server has none for the platform. Null for a command
 * that is not from the server.
 */
export function installCommand(
  command: string,
  token: string,
  platform: string,
  { programMissing, systemWide }: { programMissing: boolean; systemWide: boolean },
): string | null {
  const url = /"([^"]*)\/api\/v2\/init-script\//.exec(command)?.[1];
  if (url === undefined) return null;
  const install = (program: string) =>
    `CODER_AGENT_TOKEN="${token}" ` +
    `${systemWide ? "sudo --preserve-env=CODER_AGENT_TOKEN " : ""}${program} agent install ` +
    `--agent-url "${url}"${systemWide ? " --system" : ""}`;
  if (programMissing) return install("coder");
  return (
    `curl -fsSL "${url}/bin/coder-${platform.replace("/", "-")}" -o ./coder-install && ` +
    `chmod +x ./coder-install && ${install("./coder-install")} && rm ./coder-install`
  );
}

// The server's command is for the template's platform; the address before the platform is the same
// for all.
export function commandFor(command: string, token: string, platform: string): string {
  const match = /"([^"]*\/api\/v2\/init-script\/)[^"]*"/.exec(command);
  if (!match) return command;
  const url = `${match[1]}${platform}`;
  return platform.startsWith("windows")
    ? `$env:CODER_AGENT_TOKEN="${token}"; iwr -useb "${url}" | iex`
    : `curl -fsSL "${url}" | CODER_AGENT_TOKEN="${token}" sh`;
}
