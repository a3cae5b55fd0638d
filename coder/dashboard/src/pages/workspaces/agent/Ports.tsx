// Ports that listen in the workspace, and who else may open them.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ChevronDown, ExternalLink, X } from "lucide-react";
import { useState, type FormEvent } from "react";

import { useAppPlace } from "../../../api/app-place";
import { post, remove } from "../../../api/client";
import { useWorkspaceRights } from "../../../api/permissions";
import { inTurn } from "../../../api/turns";
import { templateById } from "../../../api/queries/templates";
import { listeningPorts, portShares } from "../../../api/queries/workspaces";
import type { Workspace, WorkspaceAgent, WorkspaceAgentPortShare } from "../../../api/types";
import { Count } from "../../../ui/Badge";
import { Button, buttonClass, IconButton } from "../../../ui/Button";
import { Failure } from "../../../ui/Failure";
import { cx } from "../../../ui/cx";
import { useChoice } from "../../../ui/forms/choice";
import { SelectField, TextField } from "../../../ui/forms/Field";
import { useForm } from "../../../ui/forms/form";
import { Skeleton } from "../../../ui/Loading";
import { Popover } from "../../../ui/Popover";
import { ago } from "../../../lib/time";
import { toast } from "../../../ui/toast";
import { portAddress, type Protocol } from "../../../features/workspace/port-address";

type Level = WorkspaceAgentPortShare["share_level"];

const LEVELS: readonly (readonly [Level, string])[] = [
  ["organization", "Organization"],
  ["authenticated", "Anyone signed in"],
  ["public", "Anyone"],
];
const ORDER: readonly Level[] = ["owner", "organization", "authenticated", "public"];

const FIRST_PORT = 9; // below it the server shares none
const LAST_PORT = 65_535;

const HOUR_MS = 3_600_000;
const ENDS = [
  ["never", "When I end it"],
  ["1", "In an hour"],
  ["8", "In 8 hours"],
  ["24", "In a day"],
  ["168", "In a week"],
] as const;
type End = (typeof ENDS)[number][0];
const KEPT = "";

function endOf(end: End): string | null {
  return end === "never" ? null : new Date(Date.now() + Number(end) * HOUR_MS).toISOString();
}

function endText(share: WorkspaceAgentPortShare): string {
  return share.expires_at ? `Ends ${ago(share.expires_at)}` : "Ends when I end it";
}

export function PortsButton({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const ports = useQuery(listeningPorts(agent.id)).data?.ports ?? [];
  return (
    <Popover
      label="Ports"
      className="w-120"
      trigger={
        <Button look="quiet">
          Open ports
          <Count value={ports.length} />
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
  const host = useAppPlace()?.host ?? "";
  const template = useQuery(templateById(workspace.template_id)).data;
  const ports = useQuery(listeningPorts(agent.id));
  const shares = useQuery(portShares(workspace.id));
  const [protocol, setProtocol] = useState<Protocol>("http");
  const mayShare = useWorkspaceRights(workspace).update;
  const most = ORDER.indexOf(template?.max_port_share_level ?? "owner");
  const levels = LEVELS.filter(([level]) => ORDER.indexOf(level) <= most);
  const mine = (shares.data?.shares ?? []).filter((share) => share.agent_name === agent.name);
  const refresh = () => queries.invalidateQueries({ queryKey: sharesKey(workspace) });
  const send: Send = (port, what) => sendShare(workspace, agent, port, what).then(refresh);
  const share = (...what: Parameters<Send>) =>
    void send(...what).catch((error: unknown) =>
      toast.failed("The port could not be shared", error),
    );
  const address = (port: number, how: Protocol) =>
    portAddress(host, port, how, workspace, agent.name);
  const listening = (ports.data?.ports ?? []).filter(
    (item) => !mine.some((other) => other.port === item.port),
  );
  return (
    <div className="flex flex-col divide-y divide-line [&>*]:px-4 [&>*]:py-3">
      {host === "" ? (
        <p className="text-sm text-muted">
          Ports open in a browser once an administrator gives the deployment a wildcard access URL.
          Until then, on your machine:{" "}
          <code className="inline-block">
            coder port-forward {workspace.name} --tcp {listening[0]?.port ?? 8080}
          </code>
        </p>
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
          <p className="text-sm text-muted">Nothing else listens at the moment.</p>
        ) : null}
        {listening.map((item) => (
          <div key={item.port} className="flex items-center gap-2">
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
            {mayShare && levels.length > 0 && host ? (
              <Button
                size="sm"
                look="quiet"
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
        {/* What is not known is not said: "nobody" would be believed. */}
        {shares.isPending ? (
          <Skeleton className="h-5 w-2/3" />
        ) : shares.isLoadingError ? (
          <Failure error={shares.error} retry={() => void shares.refetch()} />
        ) : levels.length === 0 && mine.length === 0 ? (
          <p className="text-sm text-muted">The template lets only the owner open ports.</p>
        ) : mine.length === 0 ? (
          <p className="text-sm text-muted">Nobody else can open a port of this agent.</p>
        ) : null}
        {mayShare === false && levels.length > 0 ? (
          <p className="text-sm text-muted">Who may change the workspace may share its ports.</p>
        ) : null}
        {mine.map((item) => (
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

/** `end` left out leaves the end there is. */
interface Sharing {
  level: Level;
  protocol: Protocol;
  end?: End;
}

type Send = (port: number, what: Sharing) => Promise<unknown>;

const sharesKey = (workspace: Workspace) => ["workspaces", workspace.id, "port-share"];

const turnOf = (workspace: Workspace, agent: WorkspaceAgent, port: number) =>
  `the share of ${workspace.id} ${agent.name} ${port}`;

/** Of two changes of one port that are under way at once the server may do either first: they are sent one after the other. */
function sendShare(
  workspace: Workspace,
  agent: WorkspaceAgent,
  port: number,
  { level, protocol, end }: Sharing,
): Promise<unknown> {
  return inTurn(turnOf(workspace, agent, port), () =>
    post(`/api/v2/workspaces/${workspace.id}/port-share`, {
      agent_name: agent.name,
      port,
      share_level: level,
      protocol,
      ...(end === undefined ? {} : { expires_at: endOf(end) }),
    }),
  );
}

interface SharedPortProps {
  workspace: Workspace;
  agent: WorkspaceAgent;
  share: WorkspaceAgentPortShare;
  levels: readonly (readonly [Level, string])[];
  mayShare: boolean;
  /** "" where ports open in no browser. */
  address: string;
}

/** Who may open a port, how, until when. Each choice stands from the click on and the next begins from it: made from what the
 * server said last, a second one would give back to everybody what the first had just taken. */
function SharedPort({ workspace, agent, share, levels, mayShare, address }: SharedPortProps) {
  const queries = useQueryClient();
  const { port } = share;
  const { value: now, choose } = useChoice<Sharing>(
    { level: share.share_level, protocol: share.protocol },
    {
      send: (next) => sendShare(workspace, agent, port, next),
      seen: sharesKey(workspace),
      failed: `Sharing port ${port} was not changed`,
    },
  );
  const end = () =>
    void inTurn(turnOf(workspace, agent, port), () =>
      remove(`/api/v2/workspaces/${workspace.id}/port-share`, { agent_name: agent.name, port }),
    ).then(
      () => queries.invalidateQueries({ queryKey: sharesKey(workspace) }),
      (error: unknown) => toast.failed("Sharing could not be ended", error),
    );
  // One the template no longer allows is still the one there is.
  const offered = levels.some(([level]) => level === now.level)
    ? levels
    : [...levels, ...LEVELS.filter(([level]) => level === now.level)];
  return (
    <div role="group" aria-label={`Port ${port}`} className="flex flex-col gap-1">
      <div className="flex min-h-7 items-center justify-between gap-2">
        {address ? (
          <a
            className="flex items-center gap-1 font-medium text-accent-text hover:underline"
            href={address}
            target="_blank"
            rel="noreferrer"
          >
            {port}
            <ExternalLink className="size-3.5" aria-hidden="true" />
          </a>
        ) : (
          <span className="font-medium">{port}</span>
        )}
        {mayShare ? (
          <IconButton size="sm" label={`Stop sharing port ${port}`} onClick={end}>
            <X />
          </IconButton>
        ) : (
          <span className="text-sm text-muted">
            {LEVELS.find(([level]) => level === share.share_level)?.[1]}
            {share.expires_at ? `, ${endText(share)}` : ""}
          </span>
        )}
      </div>
      {mayShare ? (
        <div
          className={cx(
            "grid grid-cols-[5.5rem_9.5rem_minmax(0,1fr)] gap-2",
            "max-sm:grid-cols-[6rem_minmax(0,1fr)] max-sm:[&>:last-child]:col-span-2",
          )}
        >
          <SelectField
            hideLabel
            label={`Protocol of port ${port}`}
            value={now.protocol}
            onChange={(how) =>
              choose({ level: now.level, protocol: how === "https" ? "https" : "http" })
            }
            options={[
              ["http", "HTTP"],
              ["https", "HTTPS"],
            ]}
          />
          <SelectField
            hideLabel
            label={`Who may open port ${port}`}
            value={now.level}
            onChange={(level) => choose({ level: level as Level, protocol: now.protocol })}
            options={offered}
          />
          <SelectField
            hideLabel
            label={`When sharing port ${port} ends`}
            value={now.end ?? KEPT}
            onChange={(next) =>
              choose({ level: now.level, protocol: now.protocol, end: next as End })
            }
            options={[[KEPT, endText(share)], ...ENDS]}
          />
        </div>
      ) : null}
    </div>
  );
}

/** Any port: what is to be shared may not listen yet. */
function SharePort({
  levels,
  onShare,
}: {
  levels: readonly (readonly [Level, string])[];
  onShare: Send;
}) {
  const form = useForm(
    {
      port: "",
      protocol: "http",
      share_level: levels[0]?.[0] ?? "",
      expires_at: ENDS[0][0] as End,
    },
    async (values) => {
      await onShare(Number(values.port), {
        level: values.share_level as Level,
        protocol: values.protocol === "https" ? "https" : "http",
        end: values.expires_at,
      });
      form.reset({ ...values, port: "" });
    },
  );
  const { values, set, problem } = form;
  return (
    <form
      aria-label="Share a port"
      className="flex flex-col gap-2 border-t border-line pt-3"
      onSubmit={form.submit}
    >
      {form.error ? <Failure error={form.error} /> : null}
      <div className="grid grid-cols-2 gap-2">
        <TextField
          label="Port to share"
          type="number"
          min={FIRST_PORT}
          max={LAST_PORT}
          required
          value={values.port}
          problem={problem("port")}
          onChange={(port) => set("port", port)}
        />
        <SelectField
          label="Protocol"
          value={values.protocol}
          onChange={(how) => set("protocol", how)}
          options={[
            ["http", "HTTP"],
            ["https", "HTTPS"],
          ]}
          problem={problem("protocol")}
        />
        <SelectField
          label="Who may open it"
          value={values.share_level}
          onChange={(level) => set("share_level", level as Level)}
          options={levels}
          problem={problem("share_level")}
        />
        <SelectField
          label="Ends"
          value={values.expires_at}
          onChange={(end) => set("expires_at", end as End)}
          options={ENDS}
          problem={problem("expires_at")}
        />
      </div>
      <div>
        <Button type="submit" busy={form.busy}>
          Share port
        </Button>
      </div>
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
      <div className="flex-1">
        <TextField
          hideLabel
          label="Port number"
          type="number"
          min={1}
          max={65535}
          required
          placeholder="Connect to port…"
          value={port}
          onChange={setPort}
        />
      </div>
      <button type="submit" className={buttonClass("secondary", "md")}>
        Open
      </button>
    </form>
  );
}
