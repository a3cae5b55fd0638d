// The user menu: settings, documentation, version, sign-out.
import { useQuery } from "@tanstack/react-query";
import { BookOpen, ExternalLink, Keyboard, LogOut } from "lucide-react";
import { useState } from "react";

import { wireguardServer } from "../../api/queries/account";
import { appearance, buildInfo } from "../../api/queries/session";
import type { User } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { Menu, MenuItem, MenuLabel, MenuSeparator } from "../../ui/Menu";
import { ACCOUNT_MENU, DEVICES } from "../../pages/account/nav";
import { signOut } from "./sign-out";

const DOCUMENTATION = "Documentation";

export function UserMenu({ user, onHelp }: { user: User; onHelp?: () => void }) {
  const info = useQuery(buildInfo).data;
  const branding = useQuery(appearance).data;
  const [opened, setOpened] = useState(false);
  const devices = useQuery({ ...wireguardServer, enabled: opened }).data?.enabled ?? true;
  const documents =
    branding?.docs_url && /^https?:/i.test(branding.docs_url) ? branding.docs_url : "";
  // Links configured by an administrator may include the documentation again.
  const links = (branding?.support_links ?? []).filter(
    (link) =>
      /^https?:/i.test(link.target) &&
      (documents === "" || (link.target !== documents && link.name !== DOCUMENTATION)),
  );
  return (
    <Menu
      label="Your account"
      onOpen={() => setOpened(true)}
      trigger={
        <button
          type="button"
          className="flex items-center gap-2 rounded-md p-1 hover:bg-hover"
          data-testid="user-dropdown-trigger"
        >
          <Avatar name={user.username} src={user.avatar_url} size="sm" />
          <span className="sr-only">Open user menu of </span>
          <span className="max-w-32 truncate text-base font-medium max-sm:hidden">
            {user.username}
          </span>
        </button>
      }
    >
      <div className="px-2.5 py-1.5">
        <p className="truncate font-medium">{user.name || user.username}</p>
        <p className="truncate text-sm text-muted">{user.email}</p>
      </div>
      <MenuSeparator />
      {ACCOUNT_MENU.filter((item) => item.to !== DEVICES || devices).map((item) => (
        <MenuItem key={item.to} to={item.to} icon={<item.icon />}>
          {item.text}
        </MenuItem>
      ))}
      <MenuSeparator />
      {documents ? (
        <MenuItem href={documents} icon={<BookOpen />}>
          {DOCUMENTATION}
        </MenuItem>
      ) : null}
      {links.map((link) => (
        <MenuItem key={link.target} href={link.target} icon={<ExternalLink />}>
          {link.name}
        </MenuItem>
      ))}
      {onHelp ? (
        <MenuItem icon={<Keyboard />} onSelect={onHelp}>
          Keyboard shortcuts
        </MenuItem>
      ) : null}
      <MenuItem icon={<LogOut />} onSelect={() => void signOut()}>
        Sign out
      </MenuItem>
      {info ? <MenuLabel>Coder {info.version}</MenuLabel> : null}
    </Menu>
  );
}
