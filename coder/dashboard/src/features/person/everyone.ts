// The group of all members of an organization. Its id is the organization's id.
import type { Group } from "../../api/types";
import type { Entry } from "./AccessList";
import { counted } from "../../lib/words";

export const isEveryone = (group: Pick<Group, "id" | "organization_id">): boolean =>
  group.id === group.organization_id;

export const groupName = (
  group: Pick<Group, "id" | "organization_id" | "display_name" | "name">,
): string =>
  isEveryone(group) ? group.display_name || "Everyone" : group.display_name || group.name;

/** A group in an access list. */
export const groupEntry = (
  group: Pick<
    Group,
    "id" | "organization_id" | "display_name" | "name" | "avatar_url" | "total_member_count"
  >,
): Omit<Entry, "role"> => ({
  id: group.id,
  kind: "group",
  name: groupName(group),
  hint: `Group, ${counted(group.total_member_count, "member")}`,
  picture: group.avatar_url,
  everyone: isEveryone(group),
});
