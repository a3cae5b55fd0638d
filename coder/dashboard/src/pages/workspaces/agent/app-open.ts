// How an application is opened: most by the browser's own link, some need more.
import { post } from "../../../api/client";
import type { GenerateAPIKeyResponse, WorkspaceApp } from "../../../api/types";
import { toast } from "../../../ui/toast";
import { TOKEN } from "../../../features/workspace/app-address";

const SLIM = "width=900,height=600";

/** A program on this machine signs in with a key of its own. Which may, `addressOf` has decided: it left the place for it. */
const wantsKey = (app: WorkspaceApp, address: string) => app.external && address.includes(TOKEN);

/** Whether a plain link is enough. */
export function isPlainLink(app: WorkspaceApp, address: string): boolean {
  return !wantsKey(app, address) && app.open_in !== "slim-window";
}

/** For what is no plain link. The key is made only when somebody opens it. */
export function openApp(app: WorkspaceApp, address: string): void {
  if (wantsKey(app, address)) {
    void post<GenerateAPIKeyResponse>("/api/v2/users/me/keys").then(
      ({ key }) => window.location.assign(address.replaceAll(TOKEN, key)),
      (error: unknown) =>
        toast.failed(`${app.display_name || app.slug} could not be opened`, error),
    );
  } else window.open(address, `app-${app.id}`, SLIM);
}

/** What a menu's entry for it does. */
export function appEntry(
  app: WorkspaceApp,
  address: string | null,
): { href?: string; onSelect?: () => void } {
  if (address === null) return {};
  return isPlainLink(app, address) ? { href: address } : { onSelect: () => openApp(app, address) };
}
