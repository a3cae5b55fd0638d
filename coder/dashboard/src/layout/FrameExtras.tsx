// What stands in the top bar between the menus and the person: the inbox and the way to workspaces.
import type { User } from "../api/types";

 
export function FrameExtras(_: { user: User }) {
  return null;
}
