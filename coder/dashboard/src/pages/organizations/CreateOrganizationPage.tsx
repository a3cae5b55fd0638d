// Creation of an organization with its own members, templates and provisioners.
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "react-router";

import { post } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import type { Organization } from "../../api/types";
import { ButtonLink } from "../../ui/Button";
import { Narrow, PageHead } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { OrganizationForm } from "./OrganizationForm";

export function CreateOrganizationPage() {
  useTitle();
  const may = usePermissions();
  const queries = useQueryClient();
  const navigate = useNavigate();
  if (may.known && !may.createOrganization)
    return <PermissionDenied subject="the form for new organizations" />;
  return (
    <Narrow>
      <PageHead
        title="New organization"
        description="An organization has its own members, groups, templates, provisioners and settings. Users can belong to several."
        crumbs={[["Organizations", "/organizations"], ["New"]]}
      />
      <OrganizationForm
        start={{ name: "", display_name: "", description: "", icon: "" }}
        actions={<ButtonLink to="/organizations">Cancel</ButtonLink>}
        send={async (values) => {
          const created = await post<Organization>("/api/v2/organizations", values);
          toast.done(`Organization "${values.name}" created successfully.`);
          await queries.invalidateQueries({ queryKey: ["organizations"] });
          await navigate(`/organizations/${created.name}`);
        }}
      />
    </Narrow>
  );
}
