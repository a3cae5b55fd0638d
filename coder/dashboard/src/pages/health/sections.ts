// The checks of the health report and the remedy for each problem. One table: pages, problems and
// links read it.
import type { HealthcheckReport, HealthMessage, HealthSettings } from "../../api/types";

export type SectionKey =
  "access_url" | "database" | "derp" | "websocket" | "workspace_proxy" | "provisioner_daemons";
export type DismissName = HealthSettings["dismissed_healthchecks"][number];

export interface HealthSection {
  key: SectionKey;
  path: string;
  title: string;
  /** The document title, where other programs know the check by another name. */
  crumb?: string;
  dismiss: DismissName;
  about: string;
}

export const SECTIONS: readonly HealthSection[] = [
  {
    key: "access_url",
    path: "/health/access-url",
    title: "Access URL",
    dismiss: "AccessURL",
    about: "The URL at which users, agents and CLIs reach this server.",
  },
  {
    key: "database",
    path: "/health/database",
    title: "Database",
    dismiss: "Database",
    about: "The PostgreSQL database. A slow database slows down every page and build.",
  },
  {
    key: "derp",
    path: "/health/derp",
    title: "DERP",
    dismiss: "DERP",
    about: "Relays for connections to workspaces that cannot be direct.",
  },
  {
    key: "websocket",
    path: "/health/websocket",
    title: "WebSocket",
    crumb: "Websocket",
    dismiss: "Websocket",
    about:
      "Live pages, terminals and agents use WebSockets; every proxy in between has to support them.",
  },
  {
    key: "workspace_proxy",
    path: "/health/workspace-proxy",
    title: "Workspace proxies",
    crumb: "Workspace Proxy",
    dismiss: "WorkspaceProxy",
    about: "Regional proxies that lower the latency of workspace connections.",
  },
  {
    key: "provisioner_daemons",
    path: "/health/provisioner-daemons",
    title: "Provisioners",
    crumb: "Provisioner Daemons",
    dismiss: "ProvisionerDaemons",
    about: "Processes that build workspaces and import templates.",
  },
];

/** The remedy by problem code; "" for problems without a code. */
export const ADVICE: Readonly<Record<HealthMessage["code"], string>> = {
  EACS01: "Start the server with an access URL: CODER_ACCESS_URL=https://coder.example.com.",
  EACS02:
    "Correct CODER_ACCESS_URL: it needs a scheme and a host, such as https://coder.example.com.",
  EACS03:
    "The server cannot reach its own access URL. Check DNS and the firewall on the server’s machine: curl $CODER_ACCESS_URL/healthz.",
  EACS04:
    "Another server answers at the access URL. Check the load balancer: it has to forward /healthz to this server.",
  EDB01:
    "The database does not respond. Check that PostgreSQL is running, and check the address and password in CODER_PG_CONNECTION_URL.",
  EDB02:
    "The database responds slowly. Move it closer to the server (below 5 ms), give it more memory, or check for long queries.",
  EDERP01:
    "A relay can only be reached over WebSocket. Let the load balancer pass “Upgrade: DERP”, or accept lower throughput.",
  EDERP02: "One relay of a region is down; the region still works. Check its node below.",
  EDERP03:
    "A region has no working relay. Check that its address and ports are reachable from the server.",
  EPD01:
    "No provisioner is connected, so builds wait. Run coder provisioner start, or set CODER_PROVISIONER_DAEMONS=3 for built-in ones.",
  EPD02: "A provisioner runs another version than the server. Update it to the server’s version.",
  EPD03: "A provisioner uses an old protocol that a future version will drop. Update it.",
  EWP01: "The proxies could not be listed. Check the server’s log.",
  EWP02:
    "A proxy does not respond to the server. Check that it is running and that its address is reachable from the server’s machine.",
  EWP04: "A proxy responds but is unhealthy. Its errors are listed below.",
  EWS01:
    "A WebSocket could not be opened through the access URL. Let the load balancer pass “Connection: Upgrade”.",
  EWS02:
    "WebSockets open, but messages do not come back. A proxy in between may buffer them; turn off its buffering.",
  EWS03: "A WebSocket returned other data than was sent. A proxy in between modifies it.",
  EUNKNOWN: "If the message does not say what to do, check the server’s log for the reason.",
};

export interface Finding {
  section: HealthSection;
  severity: "warning" | "error";
  code: HealthMessage["code"];
  message: string;
  advice: string;
}

const CODE = /^(E[A-Z]+\d*):\s*/;

/** All problems, errors first; dismissed checks are left out. */
export function findings(report: HealthcheckReport): Finding[] {
  const problems = SECTIONS.flatMap((section) => {
    const part = report[section.key];
    if (part.dismissed) return [];
    const warnings: Finding[] = part.warnings.map(({ code, message }) => ({
      section,
      severity: part.severity === "error" ? "error" : "warning",
      code,
      message,
      advice: ADVICE[code],
    }));
    if (part.error) {
      const code = (CODE.exec(part.error)?.[1] ?? "EUNKNOWN") as HealthMessage["code"];
      warnings.unshift({
        section,
        severity: "error",
        code,
        message: part.error.replace(CODE, ""),
        advice: ADVICE[code] ?? ADVICE.EUNKNOWN,
      });
    }
    return warnings;
  });
  return problems.sort((a, b) => Number(b.severity === "error") - Number(a.severity === "error"));
}

export const TONES = { ok: "good", warning: "warn", error: "bad" } as const;
export const WORDS = { ok: "Healthy", warning: "Warning", error: "Critical" } as const;

/**
 * "0.726ms" in readable digits: "0.73 ms". Any text other than one number with one unit stays
 * unchanged.
 */
export function rounded(text: string): string {
  const match = /^([\d.]+)(ns|[uµ]s|ms|s)$/.exec(text);
  return match ? `${Number(Number(match[1]).toPrecision(2))} ${match[2]}` : text;
}
