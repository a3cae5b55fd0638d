// The person's own menu, behind the avatar.
import type { NavItem } from "./nav";

export const ACCOUNT: readonly NavItem[] = [
  { to: "/install", text: "Install CLI", words: "command line download" },
];
