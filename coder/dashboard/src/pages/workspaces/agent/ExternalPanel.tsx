// How to attach the machine: choose its platform, copy one line, run it there.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { RotateCw } from "lucide-react";
import { useState } from "react";

import { post, seg } from "../../../api/client";
import { setKnown } from "../../../api/overtaken";
import { useMissingProgram } from "../../../api/queries/programs";
import { externalCredentials } from "../../../api/queries/workspaces";
import type { ExternalAgentCredentials, Workspace, WorkspaceAgent } from "../../../api/types";
import { Button } from "../../../ui/Button";
import { WhereToRun } from "./WhereToRun";
import { CodeBox } from "../../../ui/text/CodeBox";
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
  const lacked = missing(platform);
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
      {lacked ? (
        <Notice kind="warning" title="This server has no program for that platform.">
          {platform.startsWith("windows") ? (
            <p>The command waits until an agent is here. Or run the line for Linux inside WSL.</p>
          ) : (
            <p>
              The command works there only if <code>coder</code> is installed on the machine
              already, by the wheel for example: <code>pipx install FILE.whl</code>. Otherwise it
              waits until the program is here.
            </p>
          )}
          <p>For whoever runs this deployment: {lacked.remedy}</p>
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
      <WhereToRun command={credentials.data?.command} />
      {credentials.data && !platform.startsWith("windows") ? (
        <AfterReboot
          workspace={workspace}
          command={credentials.data.command}
          token={credentials.data.agent_token}
          platform={platform}
          lacked={lacked !== undefined}
        />
      ) : null}
    </div>
  );
}

/** The agent as a service: nobody who runs the line above by hand learns of it otherwise. Not on Windows, where there is none. */
function AfterReboot({
  workspace,
  command,
  token,
  platform,
  lacked,
}: {
  workspace: Workspace;
  command: string;
  token: string;
  platform: string;
  lacked: boolean;
}) {
  const [open, setOpen] = useState(false); // drawn only then: other programs find the command above by what it is alone in
  const [whole, setWhole] = useState(false);
  const line = installCommand(command, token, platform, { lacked, whole });
  if (line === null) return null;
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="font-medium">Keep it attached after a reboot</summary>
      {open ? (
        <div className="mt-2 flex flex-col gap-3">
          <p className="text-muted">
            <code>coder agent install</code> makes the agent a service of the machine: it starts
            with the machine, and comes back by itself. Run it instead of the command above; if that
            still runs there, end it first.
          </p>
          <CodeBox
            label={`Command that keeps ${workspace.name} attached`}
            command={line}
            testId="install-command"
          />
          <Checkbox
            label="For the whole machine"
            hint="As root, by sudo. Else for you alone, without root."
            checked={whole}
            onChange={setWhole}
          />
          <p className="text-sm text-muted">
            Run it again after the token was rotated. <code>coder agent uninstall</code> takes
            everything away.
          </p>
        </div>
      ) : null}
    </details>
  );
}

/** For a machine that is attached: its command and its token are asked for only when somebody wants them. */
export function AttachAgain({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="text-sm text-muted">Attach it again, or rotate its token</summary>
      {open ? (
        <div className="mt-2">
          <ExternalPanel workspace={workspace} agent={agent} />
        </div>
      ) : null}
    </details>
  );
}

/** A new token for the machine. The one in use lets the agent in until the new one is used. */
function RotateToken({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const queries = useQueryClient();
  const [asking, setAsking] = useState(false);
  const rotate = async () => {
    const made = await post<ExternalAgentCredentials>(
      `/api/v2/workspaces/${workspace.id}/external-agent/${seg(agent.name)}/rotate-token`,
    );
    setKnown(queries, externalCredentials(workspace.id, agent.name).queryKey, {
      command: made.command,
      agent_token: made.agent_token,
    });
    toast.done(
      "There is a new token.",
      "Run the command above on the machine; then the old token ends.",
    );
  };
  return (
    <div>
      <Button size="sm" icon={<RotateCw />} onClick={() => setAsking(true)}>
        Rotate token
      </Button>
      <Confirm
        open={asking}
        onClose={() => setAsking(false)}
        title={`New token for ${agent.name}?`}
        confirm="Rotate"
        danger={false}
        onConfirm={rotate}
      >
        <p>
          Do this when the token may have been seen by somebody. The machine stays connected: the
          old token works until the new one is used for the first time, and never again after.
        </p>
      </Confirm>
    </div>
  );
}

/** Fetches the program, lets it make its service (it keeps a copy of itself) and removes it. Where the server has none for the
 * platform, the one that is installed there. Null for a command that is not the server's. */
export function installCommand(
  command: string,
  token: string,
  platform: string,
  { lacked, whole }: { lacked: boolean; whole: boolean },
): string | null {
  const url = /"([^"]*)\/api\/v2\/init-script\//.exec(command)?.[1];
  if (url === undefined) return null;
  const install = (program: string) =>
    `CODER_AGENT_TOKEN="${token}" ` +
    `${whole ? "sudo --preserve-env=CODER_AGENT_TOKEN " : ""}${program} agent install ` +
    `--agent-url "${url}"${whole ? " --system" : ""}`;
  if (lacked) return install("coder");
  return (
    `curl -fsSL "${url}/bin/coder-${platform.replace("/", "-")}" -o ./coder-install && ` +
    `chmod +x ./coder-install && ${install("./coder-install")} && rm ./coder-install`
  );
}

// The server's command is for the template's platform; the address before the platform is the same for all.
export function commandFor(command: string, token: string, platform: string): string {
  const match = /"([^"]*\/api\/v2\/init-script\/)[^"]*"/.exec(command);
  if (!match) return command;
  const url = `${match[1]}${platform}`;
  return platform.startsWith("windows")
    ? `$env:CODER_AGENT_TOKEN="${token}"; iwr -useb "${url}" | iex`
    : `curl -fsSL "${url}" | CODER_AGENT_TOKEN="${token}" sh`;
}
