// The machines of the fleet's table: one page of them, or all, when the table is filtered by readings. The
// server keeps readings for each agent by itself and cannot search them.
import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";

import { agentHealthIndicators, workspaces } from "../../../api/queries/workspaces";
import type { Workspace } from "../../../api/types";
import { allMatching } from "../../../features/workspace/all-matching";
import { FLEET, machinesOf, readFirst, type Machine } from "./fleet";

export const PAGE = 50; // each row has a request of its own
/** Machines whose readings are requested at most: the server answers 512 requests of a user in a minute. */
export const MOST_READ = 200;
const SLOWLY_MS = 60_000;

interface Fleet {
  /** undefined until loaded. */
  workspaces: readonly Workspace[] | undefined;
  /** The number of workspaces on the server. */
  count: number | undefined;
  machines: readonly Machine[];
  /** Machines whose readings are on their way. */
  pending: number;
  /** Machines whose readings were not requested, or did not arrive. */
  unread: number;
  stale: boolean;
  error: Error | null;
  retry: () => void;
}

export function useFleet(page: number, whole: boolean): Fleet {
  const listed = useQuery({
    ...workspaces(FLEET, page, PAGE),
    placeholderData: keepPreviousData,
    enabled: !whole,
  });
  const complete = useQuery({
    queryKey: ["workspaces", FLEET, "all"],
    queryFn: () => allMatching(FLEET),
    refetchInterval: SLOWLY_MS,
    enabled: whole,
  });
  const list = whole ? complete : listed;
  const found = whole ? complete.data : listed.data?.workspaces;
  const bare = machinesOf(found ?? []);
  const read = readFirst(bare, MOST_READ);
  const lights = useQueries({
    queries: read.map(({ agent }) => ({
      ...agentHealthIndicators(agent.id),
      ...(whole ? { refetchInterval: SLOWLY_MS } : {}),
    })),
  });
  const byAgent = new Map(read.map(({ agent }, index) => [agent.id, lights[index]]));
  const count = whole ? complete.data?.length : listed.data?.count;
  return {
    workspaces: found,
    count: listed.data?.count ?? count,
    machines: bare.map((machine) => ({
      ...machine,
      lights: byAgent.get(machine.agent.id)?.data ?? null,
    })),
    pending: lights.filter((item) => item.isPending).length,
    unread: bare.length - read.length + lights.filter((item) => item.isLoadingError).length,
    stale: list.isPlaceholderData,
    error: list.isLoadingError ? list.error : null,
    retry: () => void list.refetch(),
  };
}
