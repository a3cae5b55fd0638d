// The frame of one organization's pages, with a menu of the others.
import { useQuery } from "@tanstack/react-query";
import { Building2, Check, ChevronsUpDown, Plus } from "lucide-react";
import { Outlet } from "react-router";

import { usePermissions } from "../../api/permissions";
import { organizations } from "../../api/queries/session";
import { SidePage } from "../../features/navigation/SidePage";
import { Avatar } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { LoadFailure } from "../../ui/Failure";
import { Loading } from "../../ui/Loading";
import { Menu, MenuItem, MenuLabel, MenuSeparator } from "../../ui/Menu";
import { NotFoundPage } from "../../ui/NotFoundPage";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { organizationPages } from "./nav";
import {
  useOrganization,
  type OrganizationView,
} from "../../features/organization/useOrganization";

export function OrganizationLayout() {
  const view = useOrganization();
  const list = useQuery(organizations);
  if (list.isLoadingError)
    return <LoadFailure query={list} title="Failed to load the organizations" />;
  if (view === null) return <Loading />;
  if (view === undefined) return <NotFoundPage />;
  const groups = organizationPages(view.home, view.may);
  if (view.known && groups.length === 0)
    return <PermissionDenied subject="this organization's settings" />;
  return (
    <SidePage label="Organization" groups={groups} head={<OrganizationMenu view={view} />}>
      {view.known ? <Outlet /> : <Loading />}
    </SidePage>
  );
}

function OrganizationMenu({ view }: { view: OrganizationView }) {
  const all = useQuery(organizations).data ?? [];
  const may = usePermissions();
  return (
    <Menu
      align="start"
      label="Organizations"
      trigger={
        <Button className="w-full justify-start!">
          <span className="sr-only">Organization: </span>
          <Avatar name={view.name} src={view.organization.icon} size="xs" square />
          <span className="min-w-0 flex-1 truncate text-left">{view.name}</span>
          <ChevronsUpDown className="text-faint" />
        </Button>
      }
    >
      <MenuLabel>Organizations</MenuLabel>
      {all.map((organization) => (
        <MenuItem
          key={organization.id}
          to={`/organizations/${organization.name}`}
          icon={organization.id === view.organization.id ? <Check /> : <Building2 />}
        >
          {organization.display_name || organization.name}
        </MenuItem>
      ))}
      {may.createOrganization ? (
        <>
          <MenuSeparator />
          <MenuItem to="/organizations/new" icon={<Plus />}>
            Create organization
          </MenuItem>
        </>
      ) : null}
    </Menu>
  );
}
