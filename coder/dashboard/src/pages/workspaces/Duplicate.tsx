// A menu item that duplicates a workspace, for users who may create another one.
import { Copy } from "lucide-react";

import { NO_WORKSPACES } from "../../api/permissions";
import type { Workspace } from "../../api/types";
import { MenuItem, MenuNote } from "../../ui/Menu";
import { duplicatePath } from "./paths";

/**
 * `mayCreate` is queried before the menu opens: an item that appears late would shift the others
 * under the pointer.
 */
export function Duplicate({
  workspace,
  mayCreate,
}: {
  workspace: Workspace;
  mayCreate: boolean | undefined;
}) {
  if (mayCreate === false) return <MenuNote>{NO_WORKSPACES}</MenuNote>;
  return mayCreate ? (
    <MenuItem icon={<Copy />} to={duplicatePath(workspace)}>
      Duplicate…
    </MenuItem>
  ) : null;
}
