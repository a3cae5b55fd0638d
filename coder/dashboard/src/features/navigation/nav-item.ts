// A link of a menu, and who may follow it.
import type { Permissions } from "../../api/permissions";

export interface NavItem {
  to: string;
  text: string;
  allowed?: (may: Permissions) => boolean;
  /** Further search words for the command palette. */
  words?: string;
}
