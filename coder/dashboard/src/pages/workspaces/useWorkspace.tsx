// The workspace of an address, with live updates. `/@owner/name` looks like any other two segments
// to the router.
import { useQuery } from "@tanstack/react-query";
import { useMemo, type ReactNode } from "react";
import { useParams } from "react-router";

import { ApiError } from "../../api/client";
import { workspaceByName } from "../../api/queries/workspaces";
import type { Workspace } from "../../api/types";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { NotFoundPage } from "../../ui/NotFoundPage";
import { useOffers } from "../../features/workspace/offers";
import { useWorkspaceWatch } from "../../features/workspace/watch";

type Found = { workspace: Workspace; view: null } | { workspace: null; view: ReactNode };

export function useWorkspace(): Found {
  const params = useParams();
  const owner = params["owner"] ?? "";
  const named = owner.startsWith("@");
  const query = workspaceByName(owner.slice(1), params["workspace"] ?? "");
  const result = useQuery({ ...query, enabled: named });
  useWorkspaceWatch(result.data?.id, query.queryKey);
  const { data } = result;
  const [workspace] = useOffers(useMemo(() => (data ? [data] : []), [data]));
  if (!named) return { workspace: null, view: <NotFoundPage /> };
  // A workspace that the user can no longer see disappears from the page; any other failure keeps the
  // last known state.
  if (result.error instanceof ApiError && result.error.status === 404)
    return {
      workspace: null,
      view: (
        <NotFoundPage subject={`The workspace ${owner.slice(1)}/${params["workspace"] ?? ""}`} />
      ),
    };
  if (workspace) return { workspace, view: null };
  if (!result.error) return { workspace: null, view: <SkeletonRows rows={4} /> };
  return {
    workspace: null,
    view: <Failure error={result.error} retry={() => void result.refetch()} />,
  };
}
