// All workspaces that match a search, for actions on more than one page.
import { get, withQuery } from "../../api/client";
import type { Workspace, WorkspacesResponse } from "../../api/types";

const PAGE = 100;
/** Workspaces that one action covers at most. */
export const MOST = 500;

export const unique = (list: readonly Workspace[]): Workspace[] => [
  ...new Map(list.map((workspace) => [workspace.id, workspace])).values(),
];

/** Return the first `MOST` workspaces that match, page by page. */
export async function allMatching(query: string): Promise<Workspace[]> {
  const all: Workspace[] = [];
  for (let offset = 0; offset < MOST; offset += PAGE) {
    const page = await get<WorkspacesResponse>(
      withQuery("/api/v2/workspaces", { limit: PAGE, offset: offset || undefined, q: query }),
    );
    all.push(...page.workspaces);
    if (page.workspaces.length < PAGE) break;
  }
  return unique(all);
}

/** Requests of one action at the same time. */
const AT_ONCE = 6;

/** Call `act` for each workspace, some at a time. Like Promise.allSettled, it never rejects. */
export async function settleAll(
  list: readonly Workspace[],
  act: (workspace: Workspace) => Promise<unknown>,
): Promise<PromiseSettledResult<unknown>[]> {
  const results: PromiseSettledResult<unknown>[] = [];
  const queue = [...list.entries()];
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      const [index, workspace] = item;
      [results[index]] = (await Promise.allSettled([act(workspace)])) as [
        PromiseSettledResult<unknown>,
      ];
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}
