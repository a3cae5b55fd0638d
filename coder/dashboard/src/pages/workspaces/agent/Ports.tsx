// Ports that listen in the workspace, and who else may open them.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ChevronDown, Copy, ExternalLink } from "lucide-react";
import { useState } from "react";

import { useAppBase } from "../../../api/app-base";
import { useWorkspaceRights } from "../../../api/permissions";
import { templateById } from "../../../api/queries/templates";
import { listeningPorts, portShares } from "../../../api/queries/workspaces";
import type { Workspace, WorkspaceAgent } from "../../../api/types";
import { Count } from "../../../ui/Badge";
import { Button, IconButton } from "../../../ui/Button";
import { Failure } from "../../../ui/Failure";
import { SelectField, TextField } from "../../../ui/forms/Field";
import { Skeleton } from "../../../ui/Loading";
import { Popover } from "../../../ui/Popover";
import { copyOrReport } from "../../../ui/text/clipboard";
import { CodeBox } from "../../../ui/text/CodeBox";
import { toast } from "../../../ui/toast";
import { useMe } from "../../../features/session/useMe";
import { portAddress, type Protocol } from "../../../features/workspace/port-address";
import { target } from "../../../features/workspace/workspace-target";
import { ORDER, LEVELS, sharesKey, sendShare, type Send } from "./port-sharing";
import { OpenPort, SharePort } from "./SharePort";
import { SharedPort } from "./SharedPort";

/** Number of ports from which on the list can be searched. */
const MANY = 10;

export function PortsButton({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const ports = useQuery(listeningPorts(agent.id)).data?.ports;
  return (
    <Popover
      label="Ports"
      className="w-120"
      trigger={
        <Button variant="quiet">
          Open ports
          {ports ? <Count value={ports.length} /> : null}
          <ChevronDown />
        </Button>
      }
    >
      <Ports workspace={workspace} agent={agent} />
    </Popover>
  );
}

function Ports({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const queries = useQueryClient();
  const viewer = useMe().id;
  const host = useAppBase()?.host ?? "";
  const template = useQuery(templateById(workspace.template_id));
  const ports = useQuery(listeningPorts(agent.id));
  const shares = useQuery(portShares(workspace.id));
  const [protocol, setProtocol] = useState<Protocol>("http");
  const mayShare = useWorkspaceRights(workspace).update;
  const maxIndex = ORDER.indexOf(template.data?.max_port_share_level ?? "owner");
  const levels = LEVELS.filter(([level]) => ORDER.indexOf(level) <= maxIndex);
  const agentShares = (shares.data?.shares ?? []).filter(
    (share) => share.agent_name === agent.name,
  );
  const refresh = () => queries.invalidateQueries({ queryKey: sharesKey(workspace) });
  const send: Send = (port, sharing) => sendShare(workspace, agent, port, sharing).then(refresh);
  const share = (...args: Parameters<Send>) =>
    void send(...args).catch((error: unknown) => toast.failed("Failed to share the port", error));
  const address = (port: number, scheme: Protocol) =>
    portAddress(host, port, scheme, workspace, agent.name);
  const listening = (ports.data?.ports ?? []).filter(
    (item) => !agentShares.some((other) => other.port === item.port),
  );
  const [text, setText] = useState("");
  const needle = text.trim().toLowerCase();
  const matching = listening.filter((item) =>
    `${item.port} ${item.process_name}`.toLowerCase().includes(needle),
  );
  const forward = (port: number) => ({
    command: `coder port-forward ${target(workspace, agent, viewer)} --tcp ${port}`,
  });
  return (
    <div className="flex flex-col divide-y divide-line [&>*]:px-4 [&>*]:py-3">
      {host === "" ? (
        <div className="flex flex-col gap-2 text-sm text-muted">
          <p>
            Opening ports in a browser requires a wildcard access URL, set by an administrator.
            Until then, run on your machine:
          </p>
          <CodeBox
            label="Command that forwards a port"
            testId="port-forward-command"
            {...forward(listening[0]?.port ?? 8080)}
          />
        </div>
      ) : null}
      <section aria-label="Listening ports" className="flex flex-col gap-2">
        <div className="flex min-h-8.5 items-center justify-between gap-2">
          <h3 className="text-sm font-medium">Listening ports</h3>
          {host === "" ? null : (
            <SelectField
              hideLabel
              label="Protocol of the listening ports"
              value={protocol}
              onChange={(value) => setProtocol(value === "https" ? "https" : "http")}
              options={[
                ["http", "HTTP"],
                ["https", "HTTPS"],
              ]}
              className="w-24"
            />
          )}
        </div>
        {ports.isError ? <Failure error={ports.error} /> : null}
        {ports.data && listening.length === 0 ? (
          <p className="text-sm text-muted">No other ports are listening.</p>
        ) : null}
        {listening.length > MANY ? (
          <TextField
            label="Search ports"
            hideLabel
            type="search"
            placeholder="Search by port or process"
            value={text}
            onChange={setText}
          />
        ) : null}
        {matching.map((item) => (
          <div key={item.port} className="flex items-baseline gap-2">
            {host ? (
              <a
                className="flex items-center gap-1 font-medium text-accent-text hover:underline"
                href={address(item.port, protocol)}
                target="_blank"
                rel="noreferrer"
              >
                {item.port}
                <ExternalLink className="size-3.5" aria-hidden="true" />
              </a>
            ) : (
              <span className="font-medium">{item.port}</span>
            )}
            <span className="flex-1 truncate text-sm text-muted">{item.process_name}</span>
            <IconButton
              size="sm"
              className="self-center"
              label={`Copy the command that forwards port ${item.port}`}
              onClick={() => void copyOrReport(forward(item.port).command)}
            >
              <Copy />
            </IconButton>
            {mayShare && levels.length > 0 && host ? (
              <Button
                size="sm"
                variant="quiet"
                onClick={() =>
                  share(item.port, {
                    level: levels[0]?.[0] ?? "authenticated",
                    protocol,
                    end: "never",
                  })
                }
              >
                Share
              </Button>
            ) : null}
          </div>
        ))}
        {host ? (
          <OpenPort
            onOpen={(port) => window.open(address(port, protocol), "_blank", "noreferrer")}
          />
        ) : null}
      </section>
      <section aria-label="Shared ports" className="flex flex-col gap-2">
        <h3 className="text-sm font-medium">Shared ports</h3>
        {/* Unknown shares are not reported as none: users would believe it. */}
        {shares.isPending ? (
          <Skeleton className="h-5 w-2/3" />
        ) : shares.isLoadingError ? (
          <Failure error={shares.error} retry={() => void shares.refetch()} />
        ) : template.isLoadingError ? (
          <p className="text-sm text-muted">
            The limit of the template is unknown: {template.error.message}
          </p>
        ) : template.data && levels.length === 0 && agentShares.length === 0 ? (
          <p className="text-sm text-muted">The template allows only the owner to open ports.</p>
        ) : agentShares.length === 0 ? (
          <p className="text-sm text-muted">No ports of this agent are shared.</p>
        ) : null}
        {mayShare === false && levels.length > 0 ? (
          <p className="text-sm text-muted">
            You need update permission on this workspace to share its ports.
          </p>
        ) : null}
        {agentShares.map((item) => (
          <SharedPort
            key={item.port}
            workspace={workspace}
            agent={agent}
            share={item}
            levels={levels}
            mayShare={mayShare === true}
            address={host ? address(item.port, item.protocol) : ""}
          />
        ))}
        {mayShare && host && levels.length > 0 ? (
          <SharePort levels={levels} onShare={send} />
        ) : null}
      </section>
    </div>
  );
}
