// The workspace proxy for applications, and the latency of each. Hidden when there is no proxy.
import { useQueries, useQuery } from "@tanstack/react-query";
import { Check, ChevronDown, Globe2 } from "lucide-react";
import { useState } from "react";

import { chooseProxy, PRIMARY, useChosenProxy } from "../../api/app-base";
import { usePermissions } from "../../api/permissions";
import { regions } from "../../api/queries/session";
import { latencyTone, measure } from "../../features/proxy/latency";
import { Avatar } from "../../ui/Avatar";
import { StatusText } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Menu, MenuItem, MenuLabel, MenuSeparator } from "../../ui/Menu";

const AGAIN_MS = 60_000;

export function ProxyMenu() {
  const proxies = useQuery(regions).data?.regions ?? [];
  const may = usePermissions();
  const chosen = useChosenProxy();
  const [opened, setOpened] = useState(false);
  const primary = proxies.find((proxy) => proxy.name === PRIMARY);
  const current = proxies.find((proxy) => proxy.id === chosen && proxy.healthy) ?? primary;
  const isMeasured = (id: string) => opened || id === current?.id; // the other latencies are measured when the menu opens
  const latencies = useQueries({
    queries: proxies.map((proxy) => ({
      queryKey: ["latency", proxy.path_app_url],
      queryFn: () => measure(proxy.path_app_url),
      enabled: proxies.length > 1 && proxy.path_app_url !== "" && isMeasured(proxy.id),
      refetchInterval: AGAIN_MS,
    })),
  });
  if (proxies.length < 2 || !current) return null;
  const nameOf = (proxy: typeof current) => proxy.display_name || proxy.name;
  const latency = (id: string) => latencies[proxies.findIndex((proxy) => proxy.id === id)]?.data;
  const currentLatency = latency(current.id);
  return (
    <Menu
      label="Workspace proxy"
      onOpen={() => setOpened(true)}
      trigger={
        <Button
          variant="quiet"
          data-testid="proxy-menu"
          aria-label={
            "Applications open through " +
            `${nameOf(current)}${typeof currentLatency === "number" ? `, ${Math.round(currentLatency)} milliseconds away` : ""}`
          }
        >
          <Globe2 />
          <span className="max-lg:hidden">
            {typeof currentLatency === "number"
              ? `${Math.round(currentLatency)} ms`
              : nameOf(current)}
          </span>
          <ChevronDown />
        </Button>
      }
    >
      <MenuLabel>Applications open through</MenuLabel>
      {proxies.map((proxy) => (
        <MenuItem
          key={proxy.id}
          icon={<Avatar name={nameOf(proxy)} src={proxy.icon_url} size="xs" square />}
          disabled={!proxy.healthy}
          onSelect={() => chooseProxy(proxy.name === PRIMARY ? "" : proxy.id)}
          hint={
            proxy.healthy ? (
              <ProxyLatency ms={latency(proxy.id)} />
            ) : (
              "Not responding to the server."
            )
          }
        >
          {nameOf(proxy)}
          {proxy.id === current.id ? (
            <Check className="ml-1.5 inline" role="img" aria-label="chosen" />
          ) : null}
        </MenuItem>
      ))}
      {may.viewWorkspaceProxies ? (
        <>
          <MenuSeparator />
          <MenuItem to="/deployment/workspace-proxies">All workspace proxies</MenuItem>
        </>
      ) : null}
    </Menu>
  );
}

function ProxyLatency({ ms }: { ms: number | null | undefined }) {
  if (ms === undefined) return "Measuring…";
  if (ms === null) return "The latency cannot be measured from here.";
  return <StatusText tone={latencyTone(ms)}>{Math.round(ms)} ms</StatusText>;
}
