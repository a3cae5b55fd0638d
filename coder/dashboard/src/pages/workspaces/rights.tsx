// The user's permissions on each workspace of a list, checked for all rows in one request.
import { createContext, useContext, type ReactNode } from "react";

import { rightsKey, useChecks, workspaceChecks, type WorkspaceRights } from "../../api/permissions";
import type { AuthorizationCheck, Workspace } from "../../api/types";

const ASKED = ["start", "stop", "update", "remove"] as const;
type Asked = (typeof ASKED)[number];
type Rights = Pick<WorkspaceRights, Asked>;

const Known = createContext<(workspace: Workspace) => Rights>(() => ({}));

export function RightsOfList({
  list,
  children,
}: {
  list: readonly Workspace[];
  children: ReactNode;
}) {
  const checks: Record<`${Asked} ${string}`, AuthorizationCheck> = {};
  for (const workspace of list) {
    const all = workspaceChecks(workspace);
    for (const right of ASKED) checks[`${right} ${rightsKey(workspace)}`] = all[right];
  }
  // The list changes with every start and stop: reordering sends no request, and a new row keeps the
  // permissions of the others.
  const rights = useChecks(
    ["workspaces of a list", list.map(rightsKey).sort()],
    list.length > 0 ? checks : null,
    { keep: true },
  );
  return (
    <Known
      value={(workspace) =>
        Object.fromEntries(
          ASKED.map((right) => [right, rights[`${right} ${rightsKey(workspace)}`]]),
        ) as Rights
      }
    >
      {children}
    </Known>
  );
}

/** Nothing is allowed until known. */
export function useListRights(): (workspace: Workspace) => Rights {
  return useContext(Known);
}
