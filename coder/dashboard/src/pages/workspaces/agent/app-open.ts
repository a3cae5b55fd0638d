// Opening an application: a plain link for most, extra steps for some.
import { post } from "../../../api/client";
import type { GenerateAPIKeyResponse, WorkspaceApp } from "../../../api/types";
import { toast } from "../../../ui/toast";
import { TOKEN } from "../../../features/workspace/app-address";

const SLIM = "width=900,height=600";

/**
 * A program on this machine signs in with a token of its own. `addressOf` decides which programs
 * may: it keeps the placeholder for them.
 */
const needsToken = (app: WorkspaceApp, address: string) => app.external && address.includes(TOKEN);

/** Whether a plain link is enough. */
export function isPlainLink(app: WorkspaceApp, address: string): boolean {
  return !needsToken(app, address) && app.open_in !== "slim-window";
}

/** Opens applications that need more than a plain link. The token is created only on opening. */
export function openApp(app: WorkspaceApp, address: string): void {
  if (needsToken(app, address)) {
    void post<GenerateAPIKeyResponse>("/api/v2/users/me/keys").then(
      ({ key }) => window.location.assign(address.replaceAll(TOKEN, key)),
      (error: unknown) => toast.failed(`Failed to open ${app.display_name || app.slug}`, error),
    );
  } else window.open(address, `app-${app.id}`, SLIM);
}

/** The action of the application's menu item. */
export function appEntry(
  app: WorkspaceApp,
  address: string | null,
): { href?: string; onSelect?: () => void } {
  if (address === null) return {};
  return isPlainLink(app, address) ? { href: address } : { onSelect: () => openApp(app, address) };
}
