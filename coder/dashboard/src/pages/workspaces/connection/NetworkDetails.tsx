// What is known of the network between an agent and its clients, and the commands that measure it.
import type { AgentLights, Workspace, WorkspaceAgent } from "../../../api/types";
import { useMe } from "../../../features/session/useMe";
import { target } from "../../../features/workspace/workspace-target";
import { Facts, Section } from "../../../ui/Card";
import { Stack } from "../../../ui/Page";
import { CodeBox } from "../../../ui/text/CodeBox";
import { readingOf, wayOf } from "../fleet/fleet";
import { useMayConnect } from "../useMayConnect";

const WAYS = {
  direct: "Direct: clients exchange packets with the machine without the relay.",
  relayed: "Relayed: some clients reach the machine through the server’s relay.",
  idle: "No client is connected over the network now.",
  unknown: "The agent has not reported how its clients reach it.",
} as const;

export function NetworkDetails({
  workspace,
  agent,
  lights,
}: {
  workspace: Workspace;
  agent: WorkspaceAgent;
  lights: AgentLights | null;
}) {
  const mayConnect = useMayConnect(workspace);
  const name = target(workspace, agent, useMe().id);
  const way = wayOf(lights);
  const relays = Object.entries(
    (agent.latency ?? {}) as Record<string, { preferred: boolean; latency_ms: number }>,
  );
  return (
    <Section
      title="SSH and the network"
      description="coder ssh, editors and port forwarding do not pass through this browser’s connection."
    >
      <Stack>
        <Facts
          items={[
            ["Connection", WAYS[way]],
            ...(way === "direct" || way === "relayed"
              ? [["Clients", readingOf(lights, "path", "way").text] as const]
              : []),
            ["Loss", readingOf(lights, "path", "loss").text],
            [
              "Agent to relay",
              relays.length === 0
                ? "-"
                : relays
                    .map(([region, { latency_ms }]) => `${region}: ${Math.round(latency_ms)} ms`)
                    .join(", "),
            ],
          ]}
        />
        {mayConnect && agent.status === "connected" ? (
          <>
            <h3 className="font-medium">On your machine</h3>
            <Command text="Shows the path of your own connection" testId="ping-command">
              {`coder ping ${name}`}
            </Command>
            <Command text="Measures the throughput" testId="speedtest-command">
              {`coder speedtest ${name}`}
            </Command>
            <Command text="Tests your network and its packet size (MTU)" testId="netcheck-command">
              coder netcheck
            </Command>
          </>
        ) : null}
      </Stack>
    </Section>
  );
}

function Command({ text, testId, children }: { text: string; testId: string; children: string }) {
  return (
    <div>
      <p className="mb-1 text-sm text-muted">{text}</p>
      <CodeBox label={text} command={children} testId={testId} />
    </div>
  );
}
