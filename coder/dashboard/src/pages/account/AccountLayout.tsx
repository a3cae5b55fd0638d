// The frame of a user's own settings.
import { Outlet } from "react-router";

import { useMe } from "../../features/session/useMe";
import { ACCOUNT_PAGES } from "./nav";
import { SidePage } from "../../features/navigation/SidePage";
import { Avatar } from "../../ui/Avatar";

export function AccountLayout() {
  const me = useMe();
  return (
    <SidePage
      label="Your settings"
      groups={ACCOUNT_PAGES}
      head={
        <div className="flex items-center gap-2.5">
          <Avatar name={me.username} src={me.avatar_url} />
          <div className="min-w-0">
            <p className="truncate font-medium">{me.name || me.username}</p>
            <p className="truncate text-sm text-muted">{me.email}</p>
          </div>
        </div>
      }
    >
      <div className="max-w-3xl">
        <Outlet />
      </div>
    </SidePage>
  );
}
