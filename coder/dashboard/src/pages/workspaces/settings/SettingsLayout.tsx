// The frame of a workspace's settings; it provides the workspace to its pages.
import { Outlet, useLocation, useOutletContext } from "react-router";

import { NO_CHANGES, useWorkspaceRights } from "../../../api/permissions";
import type { Workspace } from "../../../api/types";
import { SidePage } from "../../../features/navigation/SidePage";
import { Avatar } from "../../../ui/Avatar";
import { Notice } from "../../../ui/Notice";
import { TextLink } from "../../../ui/Page";
import { workspacePath } from "../paths";
import { useWorkspace } from "../useWorkspace";

export function SettingsLayout() {
  const { workspace, view } = useWorkspace();
  return workspace ? <Loaded workspace={workspace} /> : view;
}

function Loaded({ workspace }: { workspace: Workspace }) {
  const may = useWorkspaceRights(workspace);
  const home = workspacePath(workspace);
  const refused = may[useLocation().pathname.endsWith("/sharing") ? "share" : "update"] === false;
  return (
    <SidePage
      label="Workspace settings"
      head={
        <div className="flex items-center gap-2.5">
          <Avatar name={workspace.template_name} src={workspace.template_icon} square />
          <div className="min-w-0">
            <TextLink to={home} className="block truncate text-text">
              {workspace.name}
            </TextLink>
            <p className="truncate text-sm text-muted">{workspace.owner_name}</p>
          </div>
        </div>
      }
      groups={[
        {
          items: [
            { to: `${home}/settings`, text: "General" },
            { to: `${home}/settings/parameters`, text: "Parameters" },
            { to: `${home}/settings/schedule`, text: "Schedule" },
            { to: `${home}/settings/sharing`, text: "Sharing", allowed: () => may.share === true },
          ],
        },
      ]}
    >
      {refused ? (
        <Notice kind="info" title={NO_CHANGES}>
          Ask its owner or an administrator of its organization.
        </Notice>
      ) : (
        <Outlet context={workspace} />
      )}
    </SidePage>
  );
}

export const useSettingsWorkspace = () => useOutletContext<Workspace>();
