// DERP relays: each region, each of its nodes, and the capabilities of the server's own network.
import { Link, useParams } from "react-router";

import type { DERPRegionReport, NetcheckReport } from "../../api/types";
import { StatusText } from "../../ui/Badge";
import { Facts, Section } from "../../ui/Card";
import { PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { NotFoundPage } from "../../ui/NotFoundPage";
import { useReport } from "./HealthLayout";
import { YesNo } from "./PartPages";
import { SectionPage } from "./SectionPage";
import { rounded, TONES, WORDS } from "./sections";
import { countedAtStart } from "../../lib/words";
import { Hint } from "../../ui/Hint";

type Regions = Record<string, DERPRegionReport>;

const FLAGS: readonly (readonly [keyof NetcheckReport, string, string])[] = [
  ["UDP", "UDP", "Required for direct connections."],
  ["IPv4", "IPv4", "Used to reach the relay."],
  ["IPv6", "IPv6", "Used to reach the relay."],
  ["ICMPv4", "ICMP", "Pings work."],
  [
    "MappingVariesByDestIP",
    "Hard NAT",
    "The NAT maps another address for each destination (symmetric NAT): direct connections often fail.",
  ],
  ["UPnP", "UPnP", "The router can open ports with it."],
  ["PMP", "NAT-PMP", "The router can open ports with it."],
  ["PCP", "PCP", "The router can open ports with it."],
  ["CaptivePortal", "Captive portal", "A portal intercepts internet traffic."],
];

export function DerpPage() {
  const { derp: part } = useReport();
  const regions = Object.values((part.regions ?? {}) as Regions);
  return (
    <SectionPage part="derp">
      <Section title="Regions" padded={false}>
        <ul aria-label="Regions" className="divide-y divide-line">
          {regions.map((item) => (
            <li key={item.region?.RegionID}>
              <Link
                to={`/health/derp/regions/${item.region?.RegionID ?? 0}`}
                className="flex flex-wrap items-center gap-x-4 gap-y-1 px-5 py-3 hover:bg-hover"
              >
                <span className="min-w-0 flex-1">
                  <span className="block font-medium">
                    {item.region?.RegionName || item.region?.RegionCode}
                  </span>
                  <span className="block text-sm text-muted">
                    {countedAtStart(item.node_reports.length, "relay")}
                  </span>
                </span>
                <StatusText tone={TONES[item.severity]}>{WORDS[item.severity]}</StatusText>
              </Link>
            </li>
          ))}
        </ul>
      </Section>
      {part.netcheck ? (
        <Section
          title="The server’s own network"
          description="Capabilities for connections between the server and agents."
        >
          <Facts
            items={FLAGS.map(
              ([name, text, hint]) =>
                [
                  <Hint key={name} text={hint}>
                    {text}
                  </Hint>,
                  <YesNo key={name} yes={part.netcheck?.[name] as boolean | null} />,
                ] as const,
            )}
          />
        </Section>
      ) : null}
      <Lines title="Network check log" lines={part.netcheck_logs} />
    </SectionPage>
  );
}

export function DerpRegionPage() {
  const { derp } = useReport();
  const id = useParams()["region"] ?? "";
  const item = ((derp.regions ?? {}) as Regions)[id];
  const name = item?.region?.RegionName ?? "";
  useTitle(name, "Health");
  if (!item) return <NotFoundPage />;
  return (
    <>
      <PageHead
        title={name}
        crumbs={[["DERP", "/health/derp"], [name]]}
        badge={<StatusText tone={TONES[item.severity]}>{WORDS[item.severity]}</StatusText>}
      />
      <Stack>
        <Section title="Region">
          <Facts
            items={[
              ["Region ID", String(item.region?.RegionID)],
              ["Code", item.region?.RegionCode],
              ["Embedded relay", <YesNo key="e" yes={item.region?.EmbeddedRelay} />],
            ]}
          />
        </Section>
        {item.node_reports.map((node) => (
          <Section
            key={node.node?.Name}
            title={node.node?.HostName || node.node?.Name}
            actions={<StatusText tone={TONES[node.severity]}>{WORDS[node.severity]}</StatusText>}
          >
            <Stack>
              {[
                ...node.warnings.map((warning) => warning.message),
                ...(node.error ? [node.error] : []),
              ].map((text) => (
                <p key={text} className="text-warn">
                  {text}
                </p>
              ))}
              <Facts
                items={[
                  ["Port", node.node?.DERPPort ? String(node.node.DERPPort) : "443"],
                  ["Can exchange messages", <YesNo key="m" yes={node.can_exchange_messages} />],
                  ["Round-trip latency", rounded(node.round_trip_ping) || "-"],
                  ["Uses WebSocket", <YesNo key="w" yes={node.uses_websocket} />],
                  [
                    "STUN",
                    <YesNo
                      key="s"
                      yes={node.stun.CanSTUN}
                      text={
                        !node.stun.Enabled
                          ? "Disabled"
                          : node.stun.CanSTUN
                            ? "Responding"
                            : (node.stun.Error ?? "Not responding")
                      }
                    />,
                  ],
                ]}
              />
              <Lines title="Log" lines={[...node.client_logs.flat(), ...node.client_errs.flat()]} />
            </Stack>
          </Section>
        ))}
      </Stack>
    </>
  );
}

function Lines({ title, lines }: { title: string; lines: readonly string[] | null }) {
  if (!lines || lines.length === 0) return null;
  return (
    <details className="rounded-xl border border-line bg-surface px-5 py-3 shadow-card">
      <summary className="font-medium">{title}</summary>
      <pre
        tabIndex={0}
        className="mt-2 max-h-80 overflow-auto text-xs whitespace-pre-wrap [overflow-wrap:anywhere]"
      >
        {lines.join("\n")}
      </pre>
    </details>
  );
}
