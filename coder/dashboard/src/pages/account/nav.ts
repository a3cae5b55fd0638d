// The user menu behind the avatar, and the navigation of the settings pages.
import { Smartphone, SquareTerminal, UserRound, type LucideIcon } from "lucide-react";

import type { NavItem } from "../../features/navigation/nav-item";

/** The side navigation of /settings. */
export const ACCOUNT_PAGES: readonly { title: string; items: readonly NavItem[] }[] = [
  {
    title: "You",
    items: [
      { to: "/settings/account", text: "Account", words: "profile name username settings" },
      { to: "/settings/appearance", text: "Appearance", words: "theme dark light font contrast" },
      { to: "/settings/notifications", text: "Notifications", words: "messages mail inbox" },
      { to: "/settings/schedule", text: "Schedule", words: "quiet hours" },
    ],
  },
  {
    title: "Access",
    items: [
      {
        to: "/settings/security",
        text: "Security",
        words: "password sign in sso sessions lost laptop phone stolen sign out everywhere",
      },
      { to: "/settings/tokens", text: "Tokens", words: "api key" },
      {
        to: "/settings/devices",
        text: "WireGuard devices",
        words: "phone vpn qr lost laptop stolen",
      },
      { to: "/settings/oauth2-provider", text: "OAuth2 applications", words: "authorized apps" },
    ],
  },
  {
    title: "For your workspaces",
    items: [
      {
        to: "/settings/external-auth",
        text: "External authentication",
        words: "github gitlab link",
      },
      { to: "/settings/ssh-keys", text: "SSH keys", words: "git" },
      { to: "/settings/secrets", text: "Secrets", words: "environment variables" },
    ],
  },
];

/** In the menu behind the avatar. */
export const DEVICES = "/settings/devices";
export const ACCOUNT_MENU: readonly (NavItem & { icon: LucideIcon })[] = [
  { to: "/settings/account", text: "Account", icon: UserRound },
  { to: DEVICES, text: "WireGuard devices", icon: Smartphone },
  { to: "/install", text: "Install CLI", icon: SquareTerminal },
];

/** All entries, for the command palette. */
export const ACCOUNT: readonly NavItem[] = [
  ...ACCOUNT_PAGES.flatMap((group) => group.items),
  { to: "/settings/tokens/new", text: "Create token", words: "api key" },
  { to: "/inbox", text: "Inbox", words: "notifications unread" },
  { to: "/install", text: "Install CLI", words: "command line download" },
  { to: "/icons", text: "Icons", words: "pictures emojis logos" },
];
