// The pages of one organization; each is for users who may see it.
import type { OrganizationPermissions } from "../../api/permissions";
import type { SideGroup } from "../../features/navigation/SidePage";

interface Entry {
  rest: string;
  text: string;
  allowed: (may: OrganizationPermissions) => boolean | undefined;
}

const PAGES: readonly { title: string; items: readonly Entry[] }[] = [
  {
    title: "People",
    items: [
      { rest: "", text: "Members", allowed: (may) => may.viewMembers },
      { rest: "/groups", text: "Groups", allowed: (may) => may.viewGroups },
      {
        rest: "/roles",
        text: "Roles",
        allowed: (may) => may.assignRoles || may.createRoles || may.viewMembers,
      },
      { rest: "/idp-sync", text: "IdP sync", allowed: (may) => may.viewSync },
    ],
  },
  {
    title: "Provisioners",
    items: [
      { rest: "/provisioners", text: "Provisioners", allowed: (may) => may.viewJobs },
      { rest: "/provisioner-keys", text: "Provisioner keys", allowed: (may) => may.viewDaemons },
      { rest: "/provisioner-jobs", text: "Provisioner jobs", allowed: (may) => may.viewJobs },
    ],
  },
  {
    title: "Organization",
    items: [{ rest: "/settings", text: "Settings", allowed: (may) => may.update }],
  },
];

export function organizationPages(home: string, may: OrganizationPermissions): SideGroup[] {
  return PAGES.map((group) => ({
    title: group.title,
    items: group.items
      .filter((item) => item.allowed(may))
      .map((item) => ({ to: `${home}${item.rest}`, text: item.text })),
  })).filter((group) => group.items.length > 0);
}
