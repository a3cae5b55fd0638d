// The organization of the groups on the page: that of the address or, below `/deployment`, the
// default one.
import { useParams } from "react-router";

import {
  useOrganizationOf,
  type OrganizationView,
} from "../../features/organization/useOrganization";

export interface GroupsHome extends OrganizationView {
  base: string;
}

export function useGroupsHome(): GroupsHome | null {
  const { organization } = useParams();
  const view = useOrganizationOf(organization);
  return view
    ? {
        ...view,
        base:
          organization === undefined
            ? "/deployment/groups"
            : `/organizations/${organization}/groups`,
      }
    : null;
}
