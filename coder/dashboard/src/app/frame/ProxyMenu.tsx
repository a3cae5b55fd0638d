// The workspace proxy for applications, and the latency of each. Hidden when there is no proxy.
import { useQueries, useQuery } from "@tanstack/react-query";
import { Check, ChevronDown, Globe2 } from "lucide-react";
import { useState } from "react";

import { chooseProxy, PRIMARY, useChosenProxy } from "../../api/app-place";
import { usePermissions } from "../../api/permissions";
import { regions } from "../../api/queries/session";
import { latencyTone, measure } from "../../features/proxy/latency";
import { Avatar } from "../../ui/Avatar";
import { StatusText } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Menu, MenuItem, MenuLabel, MenuSeparator } from "../../ui/Menu";

const AGAIN_MS = 60_000;

export function ProxyMenu() {
  const found = useQuery(regions).data?.regions ?? [];
  const may = usePermissions();
  const chosen = useChosenProxy();
  const [opened, setOpened] = useState(false);
  const primary = found.find((one) => one.name === PRIMARY);
  const current = found.find((one) => one.id === chosen && one.healthy) ?? primary;
  const wanted = (id: string) => opened || id === current?.id; // the other latencies are measured when the menu opens
  const ways = useQueries({
    queries: found.map((one) => ({
      queryKey: ["latency", one.path_app_url],
      queryFn: () => measure(one.path_app_url),
      enabled: found.length > 1 && one.path_app_url !== "" && wanted(one.id),
      refetchInterval: AGAIN_MS,
    })),
  });
  if (found.length < 2 || !current) return null;
  const nameOf = (one: typeof current) => one.display_name || one.name;
  const latency = (id: string) => ways[found.findIndex((one) => one.id === id)]?.data;
  const here = latency(current.id);
  return (
    <Menu
      label="Workspace proxy"
      onOpen={() => setOpened(true)}
      trigger={
        <Button
          look="quiet"
          data-testid="proxy-menu"
          aria-label={
            "Applications open through " +
            `${nameOf(current)}${typeof here === "number" ? `, ${Math.round(here)} milliseconds away` : ""}`
          }
        >
          <Globe2 />
          <span className="max-lg:hidden">
            {typeof here === "number" ? `${Math.round(here)} ms` : nameOf(current)}
          </span>
          <ChevronDown />
        </Button>
      }
    >
      <MenuLabel>Applications open through</MenuLabel>
      {found.map((one) => (
        <MenuItem
          key={one.id}
          icon={<Avatar name={nameOf(one)} src={one.icon_url} size="xs" square />}
          disabled={!one.healthy}
          onSelect={() => chooseProxy(one.name === PRIMARY ? "" : one.id)}
          hint={one.healthy ? <Way ms={latency(one.id)} /> : "Not responding to the server."}
        >
          {nameOf(one)}
          {one.id === current.id ? (
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

function Way({ ms }: { ms: number | null | undefined }) {
  if (ms === undefined) return "Measuring…";
  if (ms === null) return "The latency cannot be measured from here.";
  return <StatusText tone={latencyTone(ms)}>{Math.round(ms)} ms</StatusText>;
}
