// The columns of the list of workspaces.
import { Star, UsersRound } from "lucide-react";

import type { Workspace } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import type { Column } from "../../ui/lists/DataTable";
import { TextLink } from "../../ui/Page";
import { RowActions } from "./RowActions";
import { WorkspaceStatus } from "./WorkspaceStatus";

export const COLUMNS: Column<Workspace>[] = [
  {
    id: "name",
    header: "Name",
    width: "30%",
    sort: (row) => row.name,
    cell: (workspace) => (
      <div className="flex items-center gap-3">
        <span className="contents max-sm:hidden">
          <Avatar name={workspace.template_name} src={workspace.template_icon} square />
        </span>
        <div className="min-w-26">
          <span className="flex items-center gap-1.5">
            <TextLink
              to={`/@${workspace.owner_name}/${workspace.name}`}
              className="text-text [overflow-wrap:anywhere]"
            >
              {workspace.name}
            </TextLink>
            {workspace.favorite ? (
              <Star
                className="size-3.5 shrink-0 fill-current text-warn"
                role="img"
                aria-label="Favorite"
              />
            ) : null}
            {workspace.shared_with && workspace.shared_with.length > 0 ? (
              <UsersRound
                className="size-3.5 shrink-0 text-muted"
                role="img"
                aria-label={`Shared with ${workspace.shared_with.map((actor) => actor.name).join(", ")}`}
              />
            ) : null}
          </span>
        </div>
      </div>
    ),
  },
  {
    id: "owner",
    header: "Owner",
    extra: true,
    plain: true,
    width: "14%",
    sort: (row) => row.owner_name,
    cell: (row) => <span className="block truncate text-muted">{row.owner_name}</span>,
  },
  // On a phone below the name: next to it, a long state would become a column of single words.
  {
    id: "status",
    header: "Status",
    extra: true,
    plain: true,
    width: "20%",
    sort: (row) => row.latest_build.status,
    cell: (row) => <WorkspaceStatus workspace={row} />,
  },
  {
    id: "used",
    header: "Last used",
    extra: true,
    plain: true,
    width: "14%",
    sort: (row) => -Date.parse(row.last_used_at),
    cell: (row) => (
      <span className="text-muted">
        <span className="md:hidden">used </span>
        <Ago at={row.last_used_at} />
      </span>
    ),
  },
  {
    id: "template",
    header: "Template",
    extra: true,
    plain: true,
    width: "22%",
    sort: (row) => row.template_display_name || row.template_name,
    cell: (workspace) => (
      <div className="flex flex-wrap items-center gap-1.5">
        {workspace.template_display_name || workspace.template_name}
        {workspace.latest_build.has_external_agent ? <Tag>External</Tag> : null}
        {workspace.outdated ? <Tag tone="warn">Outdated</Tag> : null}
      </div>
    ),
  },
  {
    id: "actions",
    header: "Actions",
    hidden: true,
    align: "right",
    width: "11.5rem",
    cell: (row) => <RowActions workspace={row} />,
  },
];
