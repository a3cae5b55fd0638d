// Why is it slow? The path from this browser to an agent, leg by leg, what stands out, and the one
// thing to do.
import { useQueries, useQuery } from "@tanstack/react-query";
import { ArrowLeftRight, Gauge, Monitor, RefreshCw, Server, SquareTerminal } from "lucide-react";
import { useState, type ReactNode } from "react";
import { useSearchParams } from "react-router";

import { PRIMARY, useChosenProxy } from "../../../api/app-base";
import { regions } from "../../../api/queries/session";
import { agentConnection, agentHealthIndicators } from "../../../api/queries/workspaces";
import type { Region, Workspace, WorkspaceAgent } from "../../../api/types";
import { latencyTone, measure } from "../../../features/proxy/latency";
import { agentsOf } from "../../../features/workspace/status";
import { StatusText } from "../../../ui/Badge";
import { Button } from "../../../ui/Button";
import { Card, Section } from "../../../ui/Card";
import { Empty } from "../../../ui/Empty";
import { SelectField } from "../../../ui/forms/Field";
import { Skeleton } from "../../../ui/Loading";
import { PageHead, Stack } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { workspacePath } from "../paths";
import { useMayConnect } from "../useMayConnect";
import { useWorkspace } from "../useWorkspace";
import { diagnose, numberOf, type Finding } from "./diagnose";
import { NetworkDetails } from "./NetworkDetails";
import type { Speed } from "./speed";
import { SpeedTest } from "./SpeedTest";

const MEASURE_MS = 60_000;

export function ConnectionPage() {
  const { workspace, view } = useWorkspace();
  return workspace ? <Loaded workspace={workspace} /> : view;
}

function Loaded({ workspace }: { workspace: Workspace }) {
  useTitle("Why is it slow?", `${workspace.owner_name}/${workspace.name}`);
  const [params, setParams] = useSearchParams();
  const agents = agentsOf(workspace);
  const agent = agents.find((item) => item.name === params.get("agent")) ?? agents[0];
  return (
    <>
      <PageHead
        title="Why is it slow?"
        crumbs={[
          ["Workspaces", "/workspaces"],
          [workspace.owner_name],
          [workspace.name, workspacePath(workspace)],
          ["Connection"],
        ]}
        description="The connection from this browser to the workspace, measured now."
        actions={
          agents.length > 1 && agent ? (
            <SelectField
              label="Agent"
              hideLabel
              value={agent.name}
              options={agents.map(({ name }) => [name, name] as const)}
              onChange={(name) => setParams({ agent: name }, { replace: true })}
            />
          ) : null
        }
      />
      {agent ? (
        <Connection key={agent.id} workspace={workspace} agent={agent} />
      ) : (
        <Card>
          <Empty icon={Gauge} title="This workspace has no agent">
            There is no connection to measure.
          </Empty>
        </Card>
      )}
    </>
  );
}

/** The regions with this browser's latency to each; undefined until measured, null without an answer. */
function useRegions() {
  const list = useQuery(regions).data?.regions ?? [];
  const chosen = useChosenProxy();
  const latencies = useQueries({
    queries: list.map((region) => {
      // The page’s own address reaches the server, also where the access URL does not.
      const address = region.name === PRIMARY ? window.location.origin : region.path_app_url;
      return {
        queryKey: ["latency", address],
        queryFn: () => measure(address),
        refetchInterval: MEASURE_MS,
      };
    }),
  });
  const measured = list.map((region, index) => ({ region, ms: latencies[index]?.data }));
  const current =
    measured.find(({ region }) => region.id === chosen && region.healthy) ??
    measured.find(({ region }) => region.name === PRIMARY) ??
    measured[0];
  return {
    measured,
    current,
    busy: latencies.some((answer) => answer.isFetching),
    again: () => void Promise.all(latencies.map((answer) => answer.refetch())),
  };
}

const nameOf = (region: Region) =>
  region.name === PRIMARY ? "Server" : region.display_name || region.name;

function Connection({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const { measured, current, busy, again } = useRegions();
  const mayConnect = useMayConnect(workspace);
  const [speed, setSpeed] = useState<Speed | null>(null);
  const answer = useQuery(agentHealthIndicators(agent.id));
  const lights = answer.data ?? null;
  const direct = useQuery(agentConnection(agent.id)).data;
  const nearest = measured
    .filter(
      ({ region, ms }) => region.healthy && typeof ms === "number" && region !== current?.region,
    )
    .sort((a, b) => (a.ms ?? 0) - (b.ms ?? 0))[0];
  const browserMs = current?.ms ?? null;
  const known = current?.ms !== undefined && !answer.isPending;
  const agentMs = numberOf(lights, "round trip");
  const findings = diagnose({
    agent,
    lights,
    browserMs,
    nearer: nearest?.ms ? { name: nameOf(nearest.region), ms: nearest.ms } : null,
    speed,
    directDisabled: direct?.disable_direct_connections === true,
  });
  return (
    <Stack>
      <Section
        title="Path"
        description="Each key and click in a web terminal or an application travels this path and back."
        actions={
          <Button icon={<RefreshCw />} busy={busy} onClick={again}>
            Measure again
          </Button>
        }
      >
        <ol className="flex items-stretch gap-2 max-sm:flex-col">
          <Stop icon={<Monitor />} name="This browser" />
          <Leg ms={current ? current.ms : undefined} label="Browser to server" />
          <Stop icon={<Server />} name={current ? nameOf(current.region) : "Server"} />
          <Leg ms={answer.isPending ? undefined : agentMs} label="Server to agent" />
          <Stop icon={<SquareTerminal />} name={agent.name} />
        </ol>
        <p role="status" className="mt-3 min-h-6">
          {!known ? null : browserMs === null || agentMs === null ? (
            <span className="text-muted">
              {agent.status === "connected"
                ? "A part of the path has not been measured yet."
                : "The agent is not connected."}
            </span>
          ) : (
            <>
              A round trip takes about{" "}
              <strong className="font-semibold">{Math.round(browserMs + agentMs)} ms</strong>.
            </>
          )}
        </p>
      </Section>
      <Section title="What to do">
        {known ? <Findings findings={findings} /> : <Skeleton className="h-12" />}
      </Section>
      {mayConnect && agent.status === "connected" ? (
        <SpeedTest agent={agent} onMeasured={setSpeed} />
      ) : null}
      <NetworkDetails workspace={workspace} agent={agent} lights={lights} />
    </Stack>
  );
}

function Stop({ icon, name }: { icon: ReactNode; name: string }) {
  return (
    <li className="flex min-w-0 flex-col items-center justify-center gap-1 rounded-lg border border-line bg-inset px-4 py-3 [&_svg]:size-5">
      <span className="text-muted" aria-hidden="true">
        {icon}
      </span>
      <span className="max-w-40 truncate font-medium">{name}</span>
    </li>
  );
}

/** The round trip of a part of the way: undefined until measured, null if unknown. */
function Leg({ ms, label }: { ms: number | null | undefined; label: string }) {
  return (
    <li
      aria-label={label}
      className="flex flex-1 flex-col items-center justify-center gap-1 text-sm max-sm:flex-row"
    >
      <ArrowLeftRight className="size-4 text-faint max-sm:rotate-90" aria-hidden="true" />
      {ms === undefined ? (
        <span className="text-muted">Measuring…</span>
      ) : ms === null ? (
        <span className="text-muted">Unknown</span>
      ) : (
        <StatusText tone={latencyTone(ms)}>{Math.round(ms)} ms</StatusText>
      )}
    </li>
  );
}

function Findings({ findings: [first, ...others] }: { findings: readonly Finding[] }) {
  if (first === undefined)
    return (
      <p>
        <StatusText tone="good">Nothing stands out</StatusText>{" "}
        <span className="text-muted">
          If it still feels slow, run the commands below: only your machine can measure its own SSH
          connection.
        </span>
      </p>
    );
  return (
    <>
      <Advice finding={first} />
      {others.length > 0 ? (
        <ul aria-label="Also" className="mt-4 flex flex-col gap-3 border-t border-line pt-4">
          {others.map((finding) => (
            <li key={finding.title}>
              <Advice finding={finding} />
            </li>
          ))}
        </ul>
      ) : null}
    </>
  );
}

function Advice({ finding: { tone, title, advice } }: { finding: Finding }) {
  return (
    <div>
      <StatusText tone={tone}>{title}</StatusText>
      <p className="mt-0.5 text-muted">{advice}</p>
    </div>
  );
}
