// Why a connection to an agent may be slow: what stands out, the most likely cause first, each with
// the one thing to do about it.
import type { AgentLights, WorkspaceAgent } from "../../../api/types";
import type { Tone } from "../../../ui/Badge";
import { readingOf, wayOf } from "../fleet/fleet";
import { speedText, type Speed } from "./speed";

export interface Measured {
  agent: Pick<WorkspaceAgent, "status" | "lifecycle_state">;
  /** null until known, and for an agent without readings. */
  lights: AgentLights | null;
  /** Milliseconds from the browser to the server or proxy that carries terminals and applications; null if unknown. */
  browserMs: number | null;
  /** A proxy that answers this browser faster. */
  nearer: { name: string; ms: number } | null;
  /** The result of a speed test; null without one. */
  speed: Speed | null;
  /** The deployment allows relayed connections only. */
  directDisabled: boolean;
}

export interface Finding {
  tone: Tone;
  title: string;
  /** The one thing to do. */
  advice: string;
}

/** From here on a person notices the delay of each key. */
export const NOTICED_MS = 150;
/** Below this, files and pages take noticeably long. */
export const NARROW_MBITS = 10;
/** A nearer proxy is worth changing to if it saves this much. */
export const WORTH_MS = 30;

/** The number at the beginning of a reading, such as "46 ms to the server"; null if unknown. */
export function numberOf(lights: AgentLights | null, name: "round trip" | "loss"): number | null {
  const { text, status } = readingOf(lights, "path", name);
  const value = parseFloat(text);
  return status === "unknown" || Number.isNaN(value) ? null : value;
}

const HOST_ADVICE: Readonly<Record<string, string>> = {
  disk: "Free space on its disk: programs wait or fail when it is full.",
  memory: "Stop programs that use much memory, or give the workspace more of it.",
  "memory pressure": "Stop programs that use much memory, or give the workspace more of it.",
  load: "Stop what keeps the processors busy, or give the workspace more cores.",
};

function busyHost(lights: AgentLights | null): Finding[] {
  return (lights?.host.values ?? []).flatMap(({ name, value, status }) => {
    const advice = HOST_ADVICE[name];
    return advice !== undefined && (status === "bad" || status === "warning")
      ? [
          {
            tone: status === "bad" ? ("bad" as const) : ("warn" as const),
            title: `The machine itself is busy: ${name} ${value}`,
            advice,
          },
        ]
      : [];
  });
}

function farServer({ browserMs, nearer }: Measured): Finding[] {
  if (nearer && browserMs !== null && browserMs - nearer.ms >= WORTH_MS)
    return [
      {
        tone: "warn",
        title:
          `The proxy ${nearer.name} answers you in ${Math.round(nearer.ms)} ms ` +
          `instead of ${Math.round(browserMs)}`,
        advice: `Choose ${nearer.name} in the proxy menu of the top bar: terminals and applications then use it.`,
      },
    ];
  return browserMs !== null && browserMs >= NOTICED_MS
    ? [
        {
          tone: "warn",
          title: `You are ${Math.round(browserMs)} ms away from the server`,
          advice:
            "Check this device’s network, such as Wi-Fi and VPN. If it is the distance, ask an administrator " +
            "for a workspace proxy near you.",
        },
      ]
    : [];
}

function farAgent(roundTrip: number | null): Finding[] {
  return roundTrip !== null && roundTrip >= NOTICED_MS
    ? [
        {
          tone: "warn",
          title: `The machine is ${Math.round(roundTrip)} ms away from the server`,
          advice:
            "Use SSH from your own machine, which connects directly where it can, or move the workspace nearer to you.",
        },
      ]
    : [];
}

/** The leg that is narrow: the slower one, if it is slow. */
function narrowLeg(speed: Speed | null): Finding[] {
  if (speed === null) return [];
  const [browser, agent] = [speed.browser, speed.agent].map(({ down, up }) =>
    Math.min(down, up),
  ) as [number, number];
  if (Math.min(browser, agent) >= NARROW_MBITS) return [];
  return browser <= agent
    ? [
        {
          tone: "warn",
          title: `Your own line is the narrow part: ${speedText(browser)} between this browser and the server`,
          advice:
            "Try another network, without Wi-Fi or VPN, or a workspace proxy near you: the machine’s line is faster.",
        },
      ]
    : [
        {
          tone: "warn",
          title: `The machine’s line is the narrow part: ${speedText(agent)} between the server and the machine`,
          advice:
            speed.via === "relay"
              ? "Allow outgoing UDP on the machine’s network, so that the server reaches it without the relay."
              : "Check the machine’s network and what else uses it: your own line is faster.",
        },
      ];
}

function relayed({ lights, directDisabled }: Measured): Finding[] {
  if (directDisabled)
    return [
      {
        tone: "idle",
        title: "All connections use the relay: this deployment turned direct ones off",
        advice:
          "Ask an administrator to start the server without --block-direct-connections, if the networks allow UDP.",
      },
    ];
  return wayOf(lights) === "relayed"
    ? [
        {
          tone: "warn",
          title: "Some clients reach the machine through the relay only",
          advice:
            "Allow outgoing UDP on the networks of the machine and of the client. The command below shows the path of your own connection.",
        },
      ]
    : [];
}

/** What stands out, the first cause first; empty if nothing does. */
export function diagnose(measured: Measured): Finding[] {
  const { agent, lights } = measured;
  if (agent.status !== "connected")
    return [
      {
        tone: "bad",
        title: "The agent is not connected",
        advice: "The workspace’s page says since when and why. Nothing can be measured until then.",
      },
    ];
  const loss = numberOf(lights, "loss");
  return [
    ...(loss !== null && loss >= 1
      ? [
          {
            tone: "bad" as const,
            title: `${loss} % of the packets between the server and the machine are lost`,
            advice: "Check the machine’s network first: cable or Wi-Fi, VPN, and its provider.",
          },
        ]
      : []),
    ...busyHost(lights),
    ...(agent.lifecycle_state === "starting"
      ? [
          {
            tone: "busy" as const,
            title: "The startup scripts are still running",
            advice: "Wait until they have ended: they use the machine and its network.",
          },
        ]
      : []),
    ...narrowLeg(measured.speed),
    ...farServer(measured),
    ...farAgent(numberOf(lights, "round trip")),
    ...relayed(measured),
  ];
}
