// The "Admin settings" menu: each entry for those who may see its pages.
import type { NavItem } from "./nav";

export const ADMIN: readonly NavItem[] = [];
