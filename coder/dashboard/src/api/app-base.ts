// Base addresses of applications: this server, or the workspace proxy that the user chose in this
// browser.
import { useQuery } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";

import { appHost, buildInfo, regions } from "./queries/session";
import type { Region } from "./types";

export interface AppBase {
  /** The prefix before an application's path: "" for this server. */
  path: string;
  /** The wildcard host pattern for subdomain applications, "" if there is none. */
  host: string;
  /** The server's own address as templates know it. It can differ from the page's address. */
  server?: string;
}

const KEY = "user-proxy";
export const PRIMARY = "primary";
const listeners = new Set<() => void>();

function listen(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("storage", listener); // another tab changed the choice
  return () => {
    listeners.delete(listener);
    window.removeEventListener("storage", listener);
  };
}

/** The id of the chosen proxy, "" for none. */
export function useChosenProxy(): string {
  return useSyncExternalStore(listen, () => window.localStorage.getItem(KEY) ?? "");
}

export function chooseProxy(id: string): void {
  if (id === "") window.localStorage.removeItem(KEY);
  else window.localStorage.setItem(KEY, id);
  for (const listener of listeners) listener();
}

/** Ignore a proxy that was deleted or is unhealthy: the server itself always works. */
export function baseOf(proxy: Region | undefined, own: string): AppBase {
  if (!proxy?.healthy || proxy.name === PRIMARY || !/^https?:/i.test(proxy.path_app_url))
    return { path: "", host: own };
  return { path: proxy.path_app_url.replace(/\/+$/, ""), host: proxy.wildcard_hostname || own };
}

/** null until known: a link that changes under the pointer would open the wrong address. */
export function useAppBase(): AppBase | null {
  const chosen = useChosenProxy();
  const host = useQuery(appHost);
  const proxies = useQuery({ ...regions, enabled: chosen !== "" });
  const server = useQuery(buildInfo).data?.dashboard_url ?? "";
  if (host.isPending || (chosen !== "" && proxies.isPending)) return null;
  return {
    ...baseOf(
      proxies.data?.regions.find((region) => region.id === chosen),
      host.data?.host ?? "",
    ),
    server,
  };
}

/**
 * The base address of terminals: "" for this server. null until known; no request is sent while no
 * proxy is chosen.
 */
export function useTerminalBase(): string | null {
  const chosen = useChosenProxy();
  const proxies = useQuery({ ...regions, enabled: chosen !== "" });
  if (chosen === "") return "";
  return proxies.isPending
    ? null
    : baseOf(
        proxies.data?.regions.find((region) => region.id === chosen),
        "",
      ).path;
}
