// The parts of the health report and what to do about each finding. One table: pages, findings and links read it.
import type { HealthcheckReport, HealthMessage, HealthSettings } from "../../api/types";

export type SectionKey =
  "access_url" | "database" | "derp" | "websocket" | "workspace_proxy" | "provisioner_daemons";
export type DismissName = HealthSettings["dismissed_healthchecks"][number];

export interface HealthSection {
  key: SectionKey;
  path: string;
  title: string;
  /** In the title of the document, where other programs know it by another name. */
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
    about: "The address at which people, agents and command lines reach this server.",
  },
  {
    key: "database",
    path: "/health/database",
    title: "Database",
    dismiss: "Database",
    about: "Where everything is kept. A slow database makes every page and build slow.",
  },
  {
    key: "derp",
    path: "/health/derp",
    title: "DERP",
    dismiss: "DERP",
    about: "Relays that carry connections to workspaces when no direct way is found.",
  },
  {
    key: "websocket",
    path: "/health/websocket",
    title: "WebSocket",
    crumb: "Websocket",
    dismiss: "Websocket",
    about:
      "Live pages, terminals and agents use WebSockets; every proxy on the way has to let them through.",
  },
  {
    key: "workspace_proxy",
    path: "/health/workspace-proxy",
    title: "Workspace proxies",
    crumb: "Workspace Proxy",
    dismiss: "WorkspaceProxy",
    about: "Other places through which people reach their workspaces sooner.",
  },
  {
    key: "provisioner_daemons",
    path: "/health/provisioner-daemons",
    title: "Provisioners",
    crumb: "Provisioner Daemons",
    dismiss: "ProvisionerDaemons",
    about: "The programs that build workspaces and import templates.",
  },
];

/** What to do, by the code of a finding; "" is for what has none. */
export const ADVICE: Readonly<Record<HealthMessage["code"], string>> = {
  EACS01: "Start the server with an access URL: CODER_ACCESS_URL=https://coder.example.com.",
  EACS02:
    "Correct CODER_ACCESS_URL: it needs a scheme and a host, such as https://coder.example.com.",
  EACS03:
    "The server cannot reach its own access URL. Check DNS and the firewall from the server’s machine: curl $CODER_ACCESS_URL/healthz.",
  EACS04:
    "Something else answers at the access URL. Check the load balancer: /healthz has to come from this server.",
  EDB01:
    "The database does not answer. Check that PostgreSQL runs and that its address and password in CODER_PG_CONNECTION_URL are right.",
  EDB02:
    "The database is slow to answer. Put it near the server (below 5 ms), give it more memory, or look for long queries.",
  EDERP01:
    "A relay is reached by WebSocket only. Let the load balancer pass “Upgrade: DERP”, or accept the slower way.",
  EDERP02: "One relay of a region does not work; the region still does. Look at its node below.",
  EDERP03:
    "A region has no working relay. Check that its address and ports are reachable from the server.",
  EPD01:
    "No provisioner is connected: builds wait. Start one: coder provisioner start, or CODER_PROVISIONER_DAEMONS=3 for the built-in ones.",
  EPD02: "A provisioner has another version than the server. Update it to the server’s.",
  EPD03: "A provisioner speaks an old protocol that a coming version drops. Update it.",
  EWP01: "The proxies could not be listed. Look at the server’s log.",
  EWP02:
    "A proxy does not answer the server. Check that it runs and that its address is reachable from the server’s machine.",
  EWP04: "A proxy answers, but is not well. Its own errors stand below.",
  EWS01:
    "A WebSocket could not be opened through the access URL. Let the load balancer pass “Connection: Upgrade”.",
  EWS02:
    "WebSockets open, but what is sent does not come back. A proxy on the way may hold it; switch off its buffering.",
  EWS03: "A WebSocket brought back something else than was sent. Something on the way changes it.",
  EUNKNOWN: "Look at the server’s log for the reason.",
};

export interface Finding {
  section: HealthSection;
  severity: "warning" | "error";
  code: HealthMessage["code"];
  message: string;
  advice: string;
}

const CODE = /^(E[A-Z]+\d*):\s*/;

/** Everything that is not as it should be, errors first; dismissed parts are left out. */
export function findings(report: HealthcheckReport): Finding[] {
  const found = SECTIONS.flatMap((section) => {
    const part = report[section.key];
    if (part.dismissed) return [];
    const told: Finding[] = part.warnings.map(({ code, message }) => ({
      section,
      severity: part.severity === "error" ? "error" : "warning",
      code,
      message,
      advice: ADVICE[code],
    }));
    if (part.error) {
      const code = (CODE.exec(part.error)?.[1] ?? "EUNKNOWN") as HealthMessage["code"];
      told.unshift({
        section,
        severity: "error",
        code,
        message: part.error.replace(CODE, ""),
        advice: ADVICE[code] ?? ADVICE.EUNKNOWN,
      });
    }
    return told;
  });
  return found.sort((a, b) => Number(b.severity === "error") - Number(a.severity === "error"));
}

export const TONES = { ok: "good", warning: "warn", error: "bad" } as const;
export const WORDS = { ok: "Healthy", warning: "Needs attention", error: "Failing" } as const;

/** "0.726ms" in the digits a person reads: "0.73 ms". What is not one number with one unit stays as it is. */
export function rounded(text: string): string {
  const found = /^([\d.]+)(ns|[uµ]s|ms|s)$/.exec(text);
  return found ? `${Number(Number(found[1]).toPrecision(2))} ${found[2]}` : text;
}
