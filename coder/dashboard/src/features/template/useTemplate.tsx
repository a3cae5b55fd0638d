// The template of an address: `/templates/:template/…` belongs to the default organization.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useParams } from "react-router";

import { ApiError } from "../../api/client";
import { templateByName } from "../../api/queries/templates";
import type { Template } from "../../api/types";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { NotFoundPage } from "../../ui/NotFoundPage";

/** `view` is shown while there is no template. */
export function useTemplate():
  { template: Template; view: null } | { template: null; view: ReactNode } {
  const params = useParams();
  const query = useQuery(
    templateByName(params["organization"] ?? "default", params["template"] ?? ""),
  );
  if (query.data) return { template: query.data, view: null };
  if (query.isPending) return { template: null, view: <SkeletonRows rows={3} /> };
  if (query.error instanceof ApiError && query.error.status === 404)
    return { template: null, view: <NotFoundPage /> };
  return {
    template: null,
    view: <Failure error={query.error} retry={() => void query.refetch()} />,
  };
}
