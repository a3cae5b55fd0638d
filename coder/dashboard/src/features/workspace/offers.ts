// The version that an update brings. During a rollout of a template, some of its workspaces are offered
// the version of the rollout: pages read it from the same fields as the active version.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { offeredVersions } from "../../api/queries/workspaces";
import type { OfferedVersion, Workspace } from "../../api/types";

interface Offered extends Workspace {
  offered_by_rollout?: true;
}

/** Whether an update brings the version of a rollout. */
export const isStaged = (workspace: Workspace): boolean =>
  (workspace as Offered).offered_by_rollout === true;

/** Return the workspaces with their offers; those without a known offer as they are. */
export function withOffers(
  list: readonly Workspace[],
  offers: readonly OfferedVersion[],
): readonly Workspace[] {
  const known = new Map(offers.map((offer) => [offer.workspace_id, offer]));
  return list.map((workspace) => {
    const offer = known.get(workspace.id);
    if (!offer?.rollout_id) return workspace;
    const offered: Offered = {
      ...workspace,
      template_active_version_id: offer.template_version_id,
      outdated: workspace.latest_build.template_version_id !== offer.template_version_id,
      ...(offer.is_staged ? { offered_by_rollout: true as const } : {}),
    };
    return offered;
  });
}

/** The workspaces with their offers, once these are known. */
export function useOffers(list: readonly Workspace[]): readonly Workspace[] {
  const ids = list.map((workspace) => workspace.id).sort();
  const offers = useQuery({ ...offeredVersions(ids), placeholderData: keepPreviousData }).data;
  return useMemo(() => (offers ? withOffers(list, offers) : list), [list, offers]);
}
