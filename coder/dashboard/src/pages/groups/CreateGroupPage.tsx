// Creation of a group.
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "react-router";

import { post } from "../../api/client";
import type { Group } from "../../api/types";
import { ButtonLink } from "../../ui/Button";
import { Loading } from "../../ui/Loading";
import { Narrow, PageHead } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { GroupForm } from "./GroupForm";
import { useGroupsHome } from "./useGroupsHome";

export function CreateGroupPage() {
  useTitle("Create Group");
  const home = useGroupsHome();
  const queries = useQueryClient();
  const navigate = useNavigate();
  if (!home?.known) return <Loading />;
  if (!home.may.createGroups) return <PermissionDenied subject="the form for new groups" />;
  return (
    <Narrow>
      <PageHead
        title="Create group"
        crumbs={[["Groups", home.base], ["Create"]]}
        description={`In the organization ${home.name}`}
      />
      <GroupForm
        start={{ name: "", display_name: "", avatar_url: "", quota_allowance: "0" }}
        actions={<ButtonLink to={home.base}>Cancel</ButtonLink>}
        send={async (values) => {
          const created = await post<Group>(
            `/api/v2/organizations/${home.organization.name}/groups`,
            values,
          );
          await queries.invalidateQueries({
            queryKey: ["organizations", home.organization.name, "groups"],
          });
          await navigate(`${home.base}/${encodeURIComponent(created.name)}`);
        }}
      />
    </Narrow>
  );
}
