// The menu of a workspace page: what is done to a workspace besides starting and stopping it.
import { useQueryClient } from "@tanstack/react-query";
import {
  Download,
  EllipsisVertical,
  History,
  Settings,
  SlidersHorizontal,
  Star,
  StarOff,
  Trash2,
  UsersRound,
} from "lucide-react";
import { useState } from "react";

import { put, remove } from "../../api/client";
import { NO_CHANGES, useMayCreateWorkspace, type WorkspaceRights } from "../../api/permissions";
import type { Workspace } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { ButtonLink, IconButton } from "../../ui/Button";
import { Menu, MenuItem, MenuNote, MenuSeparator } from "../../ui/Menu";
import { toast } from "../../ui/toast";
import { ChangeVersion } from "./builds/ChangeVersion";
import { DeleteWorkspace } from "./DeleteWorkspace";
import { Duplicate } from "./Duplicate";
import { workspacePath } from "./paths";

interface MoreMenuProps {
  workspace: Workspace;
  may: WorkspaceRights;
  /** A dialog with a button of its own to the parameters is open: the test id belongs to that. */
  asking: boolean;
}

export function MoreMenu({ workspace, may, asking }: MoreMenuProps) {
  const queries = useQueryClient();
  const [dialog, setDialog] = useState<"delete" | "version" | null>(null);
  const mayCreate = useMayCreateWorkspace(workspace.organization_id);
  const own = useMe().id === workspace.owner_id; // favourites belong to the viewer
  const home = workspacePath(workspace);
  const favourite = (on: boolean) =>
    void (
      on
        ? put(`/api/v2/workspaces/${workspace.id}/favorite`)
        : remove(`/api/v2/workspaces/${workspace.id}/favorite`)
    ).then(
      () => queries.invalidateQueries({ queryKey: ["workspace"] }),
      (error: unknown) => toast.failed("The action failed", error),
    );
  return (
    <>
      {may.update ? (
        <ButtonLink
          to={`${home}/settings/parameters`}
          icon={<SlidersHorizontal />}
          data-testid={asking ? undefined : "workspace-parameters"}
        >
          Parameters
        </ButtonLink>
      ) : null}
      <Menu
        trigger={
          <IconButton
            label="Workspace actions"
            variant="secondary"
            data-testid="workspace-options-button"
          >
            <EllipsisVertical />
          </IconButton>
        }
      >
        {!own ? null : workspace.favorite ? (
          <MenuItem icon={<StarOff />} onSelect={() => favourite(false)}>
            Remove from favorites
          </MenuItem>
        ) : (
          <MenuItem icon={<Star />} onSelect={() => favourite(true)}>
            Add to favorites
          </MenuItem>
        )}
        {may.share ? (
          <MenuItem icon={<UsersRound />} to={`${home}/settings/sharing`}>
            Share
          </MenuItem>
        ) : null}
        {own || may.share ? <MenuSeparator /> : null}
        {may.update ? (
          <MenuItem icon={<Settings />} to={`${home}/settings`}>
            Settings
          </MenuItem>
        ) : null}
        {may.update ? (
          <MenuItem icon={<SlidersHorizontal />} to={`${home}/settings/parameters`}>
            Parameters
          </MenuItem>
        ) : null}
        {may.update === false ? <MenuNote>{NO_CHANGES}</MenuNote> : null}
        {may.start ? (
          <MenuItem icon={<History />} onSelect={() => setDialog("version")}>
            Change version…
          </MenuItem>
        ) : null}
        <Duplicate workspace={workspace} mayCreate={mayCreate} />
        <MenuItem
          icon={<Download />}
          href={`/api/v2/workspacebuilds/${workspace.latest_build.id}/logs?format=text`}
          download
        >
          Download build log
        </MenuItem>
        {may.remove ? (
          <>
            <MenuSeparator />
            <MenuItem
              icon={<Trash2 />}
              danger
              testId="delete-button"
              onSelect={() => setDialog("delete")}
            >
              Delete…
            </MenuItem>
          </>
        ) : null}
      </Menu>
      <DeleteWorkspace
        workspace={workspace}
        open={dialog === "delete"}
        onClose={() => setDialog(null)}
      />
      {dialog === "version" ? (
        <ChangeVersion workspace={workspace} onClose={() => setDialog(null)} />
      ) : null}
    </>
  );
}
