// Sign-in: the first account, passwords, providers, codes.
import { page } from "./page";

export const signInRoutes = [
  page("/setup", async () => (await import("../../pages/signin/SetupPage")).SetupPage),
  page("/login", async () => (await import("../../pages/signin/LoginPage")).LoginPage),
  page("/login/device", async () => (await import("../../pages/signin/DevicePage")).DevicePage),
  page(
    "/reset-password",
    async () => (await import("../../pages/signin/ResetPasswordPage")).ResetPasswordPage,
  ),
  page(
    "/reset-password/change",
    async () => (await import("../../pages/signin/ChangePasswordPage")).ChangePasswordPage,
  ),
];

export const signInSessionRoutes = [
  page("/cli-auth", async () => (await import("../../pages/signin/CliAuthPage")).CliAuthPage),
  page(
    "/external-auth/:provider",
    async () => (await import("../../pages/signin/ExternalAuthPage")).ExternalAuthPage,
  ),
  page(
    "/external-auth/:provider/callback",
    async () => (await import("../../pages/signin/ExternalAuthPage")).ExternalAuthPage,
  ),
];
