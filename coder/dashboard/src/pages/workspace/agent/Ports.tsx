// Ports that listen in the workspace, and who else may open them.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ChevronDown, ExternalLink, X } from "lucide-react";
import { useState, type FormEvent } from "react";

import { useAppPlace } from "../../../api/app-place";
import { post, remove } from "../../../api/client";
import { useWorkspaceRights } from "../../../api/permissions";
import { templateById } from "../../../api/queries/templates";
import { listeningPorts, portShares } from "../../../api/queries/workspaces";
import type { Workspace, WorkspaceAgent, WorkspaceAgentPortShare } from "../../../api/types";
import { Count } from "../../../ui/Badge";
import { Button, buttonClass, IconButton } from "../../../ui/Button";
import { Failure } from "../../../ui/Failure";
import { SelectField, TextField } from "../../../ui/forms/Field";
import { useForm } from "../../../ui/forms/form";
import { Popover } from "../../../ui/Popover";
import { ago } from "../../../ui/time";
import { toast } from "../../../ui/toast";

type Level = WorkspaceAgentPortShare["share_level"];
type Protocol = WorkspaceAgentPortShare["protocol"];

const LEVELS: readonly (readonly [Level, string])[] = [["organization", "Organization"], ["authenticated", "Anyone signed in"], ["public", "Anyone"]];
const ORDER: readonly Level[] = ["owner", "organization", "authenticated", "public"];

const FIRST_PORT = 9; // below it the server shares none
const LAST_PORT = 65_535;

const HOUR_MS = 3_600_000;
const ENDS = [["never", "When I end it"], ["1", "In an hour"], ["8", "In 8 hours"], ["24", "In a day"], ["168", "In a week"]] as const;
type End = (typeof ENDS)[number][0];
const KEPT = "";

function endOf(end: End): string | null {
  return end === "never" ? null : new Date(Date.now() + Number(end) * HOUR_MS).toISOString();
}

function endText(share: WorkspaceAgentPortShare): string {
  return share.expires_at ? `Ends ${ago(share.expires_at)}` : "Ends when I end it";
}

/** Where a port opens: a host of its own below the wildcard. */
export function portAddress(host: string, port: number, protocol: Protocol, workspace: Pick<Workspace, "name" | "owner_name">, agent: string, scheme = window.location.protocol): string {
  const name = `${port}${protocol === "https" ? "s" : ""}--${agent}--${workspace.name}--${workspace.owner_name}`;
  return `${scheme}//${host.replace("*", name)}/`;
}

export function PortsButton({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const ports = useQuery(listeningPorts(agent.id)).data?.ports ?? [];
  return (
    <Popover label="Ports" className="w-108" trigger={<Button look="quiet">Open ports<Count value={ports.length} /><ChevronDown /></Button>}>
      <Ports workspace={workspace} agent={agent} />
    </Popover>
  );
}

function Ports({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const queries = useQueryClient();
  const host = useAppPlace()?.host ?? "";
  const template = useQuery(templateById(workspace.template_id)).data;
  const ports = useQuery(listeningPorts(agent.id));
  const shares = useQuery(portShares(workspace.id));
  const [protocol, setProtocol] = useState<Protocol>("http");
  const mayShare = useWorkspaceRights(workspace).update;
  const most = ORDER.indexOf(template?.max_port_share_level ?? "owner");
  const levels = LEVELS.filter(([level]) => ORDER.indexOf(level) <= most);
  const mine = (shares.data?.shares ?? []).filter((share) => share.agent_name === agent.name);
  const refresh = () => queries.invalidateQueries({ queryKey: ["workspaces", workspace.id, "port-share"] });
  /** `end` left out leaves the end there is. */
  const send = (port: number, level: string, how: Protocol, end?: End) => post(`/api/v2/workspaces/${workspace.id}/port-share`, { agent_name: agent.name, port, share_level: level, protocol: how, ...(end === undefined ? {} : { expires_at: endOf(end) }) }).then(refresh);
  const share = (...what: Parameters<typeof send>) => void send(...what).catch((error: unknown) => toast.failed("The port could not be shared", error));
  const end = (port: number) => void remove(`/api/v2/workspaces/${workspace.id}/port-share`, { agent_name: agent.name, port }).then(refresh, (error: unknown) => toast.failed("Sharing could not be ended", error));
  const address = (port: number, how: Protocol) => portAddress(host, port, how, workspace, agent.name);
  const listening = (ports.data?.ports ?? []).filter((item) => !mine.some((other) => other.port === item.port));
  return (
    <div className="flex flex-col divide-y divide-line [&>*]:px-4 [&>*]:py-3">
      {host === "" ? <p className="text-sm text-muted">Ports open in a browser once an administrator gives the deployment a wildcard access URL. Until then, on your machine: <code className="inline-block">coder port-forward {workspace.name} --tcp {listening[0]?.port ?? 8080}</code></p> : null}
      <section aria-label="Listening ports" className="flex flex-col gap-2">
        <h3 className="text-sm font-medium">Listening ports</h3>
        {ports.isError ? <Failure error={ports.error} /> : null}
        {ports.data && listening.length === 0 ? <p className="text-sm text-muted">Nothing else listens at the moment.</p> : null}
        {host === "" ? null : <SelectField hideLabel label="Protocol of the listening ports" value={protocol} onChange={(value) => setProtocol(value === "https" ? "https" : "http")} options={[["http", "HTTP"], ["https", "HTTPS"]]} className="w-28" />}
        {listening.map((item) => (
          <div key={item.port} className="flex items-center gap-2">
            {host ? <a className="flex items-center gap-1 font-medium text-accent-text hover:underline" href={address(item.port, protocol)} target="_blank" rel="noreferrer">{item.port}<ExternalLink className="size-3.5" aria-hidden="true" /></a> : <span className="font-medium">{item.port}</span>}
            <span className="flex-1 truncate text-sm text-muted">{item.process_name}</span>
            {mayShare && levels.length > 0 && host ? <Button size="sm" look="quiet" onClick={() => share(item.port, levels[0]?.[0] ?? "authenticated", protocol, "never")}>Share</Button> : null}
          </div>
        ))}
        {host ? <OpenPort onOpen={(port) => window.open(address(port, protocol), "_blank", "noreferrer")} /> : null}
      </section>
      <section aria-label="Shared ports" className="flex flex-col gap-2">
        <h3 className="text-sm font-medium">Shared ports</h3>
        {levels.length === 0 ? <p className="text-sm text-muted">The template lets only the owner open ports.</p> : mine.length === 0 ? <p className="text-sm text-muted">Nobody else can open a port of this agent.</p> : null}
        {mayShare === false && levels.length > 0 ? <p className="text-sm text-muted">Who may change the workspace may share its ports.</p> : null}
        {mine.map((item) => (
          <div key={item.port} className="flex flex-wrap items-center gap-2">
            {host ? <a className="w-14 font-medium text-accent-text hover:underline" href={address(item.port, item.protocol)} target="_blank" rel="noreferrer">{item.port}</a> : <span className="w-14 font-medium">{item.port}</span>}
            {mayShare ? <>
            <SelectField hideLabel label={`Protocol of port ${item.port}`} value={item.protocol} onChange={(how) => share(item.port, item.share_level, how === "https" ? "https" : "http")} options={[["http", "HTTP"], ["https", "HTTPS"]]} />
            <SelectField hideLabel label={`Who may open port ${item.port}`} value={item.share_level} onChange={(level) => share(item.port, level, item.protocol)} options={levels} />
            <SelectField hideLabel label={`When sharing port ${item.port} ends`} value={KEPT} onChange={(end) => share(item.port, item.share_level, item.protocol, end as End)} options={[[KEPT, endText(item)], ...ENDS]} />
            <IconButton size="sm" label={`Stop sharing port ${item.port}`} onClick={() => end(item.port)}><X /></IconButton>
            </> : <span className="text-sm text-muted">{LEVELS.find(([level]) => level === item.share_level)?.[1]}{item.expires_at ? `, ${endText(item)}` : ""}</span>}
          </div>
        ))}
        {mayShare && host && levels.length > 0 ? <SharePort levels={levels} onShare={send} /> : null}
      </section>
    </div>
  );
}

type Send = (port: number, level: string, how: Protocol, end: End) => Promise<unknown>;

/** Any port: what is to be shared may not listen yet. */
function SharePort({ levels, onShare }: { levels: readonly (readonly [Level, string])[]; onShare: Send }) {
  const form = useForm({ port: "", protocol: "http", share_level: levels[0]?.[0] ?? "", expires_at: ENDS[0][0] as End }, async (values) => {
    await onShare(Number(values.port), values.share_level, values.protocol === "https" ? "https" : "http", values.expires_at);
    form.reset({ ...values, port: "" });
  });
  const { values, set, problem } = form;
  return (
    <form aria-label="Share a port" className="flex flex-col gap-2 border-t border-line pt-3" onSubmit={form.submit}>
      {form.error ? <Failure error={form.error} /> : null}
      <div className="grid grid-cols-2 gap-2">
        <TextField label="Port to share" type="number" min={FIRST_PORT} max={LAST_PORT} required value={values.port} problem={problem("port")} onChange={(port) => set("port", port)} />
        <SelectField label="Protocol" value={values.protocol} onChange={(how) => set("protocol", how)} options={[["http", "HTTP"], ["https", "HTTPS"]]} problem={problem("protocol")} />
        <SelectField label="Who may open it" value={values.share_level} onChange={(level) => set("share_level", level as Level)} options={levels} problem={problem("share_level")} />
        <SelectField label="Ends" value={values.expires_at} onChange={(end) => set("expires_at", end as End)} options={ENDS} problem={problem("expires_at")} />
      </div>
      <div><Button type="submit" busy={form.busy}>Share port</Button></div>
    </form>
  );
}

function OpenPort({ onOpen }: { onOpen: (port: number) => void }) {
  const [port, setPort] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onOpen(Number(port));
  };
  return (
    <form className="flex items-end gap-2" onSubmit={submit}>
      <TextField hideLabel label="Port number" type="number" min={1} max={65535} required placeholder="Connect to port…" value={port} onChange={setPort} />
      <button type="submit" className={buttonClass("secondary", "md")}>Open</button>
    </form>
  );
}
