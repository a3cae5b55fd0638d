// A user's own settings: /settings/….
import { createElement } from "react";
import { Navigate, type RouteObject } from "react-router";

import { around, page } from "./page";

export const accountRoutes: RouteObject[] = [
  around(
    "/settings",
    async () => (await import("../../pages/account/AccountLayout")).AccountLayout,
    [
      { index: true, element: createElement(Navigate, { to: "/settings/account", replace: true }) },
      page("account", async () => (await import("../../pages/account/ProfilePage")).ProfilePage),
      page(
        "appearance",
        async () => (await import("../../pages/account/AppearancePage")).AppearancePage,
      ),
      page(
        "notifications",
        async () => (await import("../../pages/account/NotificationsPage")).NotificationsPage,
      ),
      page(
        "schedule",
        async () => (await import("../../pages/account/QuietHoursPage")).QuietHoursPage,
      ),
      page("security", async () => (await import("../../pages/account/SecurityPage")).SecurityPage),
      page("tokens", async () => (await import("../../pages/account/TokensPage")).TokensPage),
      page(
        "tokens/new",
        async () => (await import("../../pages/account/NewTokenPage")).NewTokenPage,
      ),
      page(
        "devices",
        async () => (await import("../../pages/account/devices/DevicesPage")).DevicesPage,
      ),
      page(
        "oauth2-provider",
        async () => (await import("../../pages/account/AuthorizedAppsPage")).AuthorizedAppsPage,
      ),
      page(
        "external-auth",
        async () => (await import("../../pages/account/ExternalLinksPage")).ExternalLinksPage,
      ),
      page("ssh-keys", async () => (await import("../../pages/account/SshKeysPage")).SshKeysPage),
      page("secrets", async () => (await import("../../pages/account/SecretsPage")).SecretsPage),
    ],
  ),
];
