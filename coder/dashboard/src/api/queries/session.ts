// The session and the deployment: the queries every page needs.
import { queryOptions } from "@tanstack/react-query";

import { ApiError, get } from "../client";
import { pageText, takePageValue } from "../meta";
import type {
  AppearanceConfig,
  AppHostResponse,
  AuthMethods,
  BuildInfoResponse,
  Entitlements,
  Organization,
  PasscodeDelivery,
  Region,
  User,
  UserAppearanceSettings,
} from "../types";

const user = takePageValue<User>("user");
/** The server fills in its pages: one without a user is a signed-out visitor's. */
let signedOut = user === undefined && pageText("csrf-token") !== "";

/** The user in the page; null for the first look at a signed-out visitor's; nothing where unknown. */
function userInPage(): User | null | undefined {
  if (!signedOut) return user;
  signedOut = false; // the visitor may sign in
  return null;
}

/** What signed-out visitors may see of the appearance; the endpoint is for signed-in users. */
const publicAppearance: AppearanceConfig | undefined = signedOut
  ? {
      application_name: pageText("application-name"),
      logo_url: pageText("logo-url"),
      docs_url: pageText("docs-url"),
      service_banner: { enabled: false },
      announcement_banners: [],
    }
  : undefined;
const userAppearance = takePageValue<UserAppearanceSettings>("userAppearance");
const appearanceInPage = takePageValue<AppearanceConfig>("appearance");
const buildInPage = takePageValue<BuildInfoResponse>("build-info");

export const me = queryOptions({
  queryKey: ["users", "me"],
  queryFn: async (): Promise<User | null> => {
    try {
      return await get<User>("/api/v2/users/me");
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return null;
      throw error;
    }
  },
  staleTime: 60_000,
  ...(user || signedOut ? { initialData: userInPage as () => User | null } : {}),
});

export const hasFirstUser = queryOptions({
  queryKey: ["users", "first"],
  queryFn: async (): Promise<boolean> => {
    try {
      await get("/api/v2/users/first");
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return false;
      throw error;
    }
  },
});

export const authMethods = queryOptions({
  queryKey: ["users", "authmethods"],
  queryFn: () => get<AuthMethods>("/api/v2/users/authmethods"),
});

/** Whether the server can send a password reset code by mail. */
export const passcodeDelivery = queryOptions({
  queryKey: ["notifications", "passcodes"],
  queryFn: () => get<PasscodeDelivery>("/api/v2/notifications/passcodes"),
});

export const myAppearance = queryOptions({
  queryKey: ["users", "me", "appearance"],
  queryFn: () => get<UserAppearanceSettings>("/api/v2/users/me/appearance"),
  staleTime: Infinity,
  ...(userAppearance ? { initialData: userAppearance } : {}),
});

export const buildInfo = queryOptions({
  queryKey: ["buildinfo"],
  queryFn: () => get<BuildInfoResponse>("/api/v2/buildinfo"),
  staleTime: Infinity,
  ...(buildInPage ? { initialData: buildInPage } : {}),
});

export const appearance = queryOptions({
  queryKey: ["appearance"],
  queryFn: () => get<AppearanceConfig>("/api/v2/appearance"),
  staleTime: 60_000,
  ...(appearanceInPage || publicAppearance
    ? { initialData: (appearanceInPage ?? publicAppearance) as AppearanceConfig }
    : {}),
});

export const entitlements = queryOptions({
  queryKey: ["entitlements"],
  queryFn: () => get<Entitlements>("/api/v2/entitlements"),
  staleTime: 60_000,
});

export const organizations = queryOptions({
  queryKey: ["organizations"],
  queryFn: () => get<Organization[]>("/api/v2/organizations"),
  staleTime: 60_000,
});

export const regions = queryOptions({
  queryKey: ["regions"],
  queryFn: () => get<{ regions: Region[] }>("/api/v2/regions"),
  staleTime: 60_000,
});

export const appHost = queryOptions({
  queryKey: ["applications", "host"],
  queryFn: () => get<AppHostResponse>("/api/v2/applications/host"),
  staleTime: Infinity,
});

export const experiments = queryOptions({
  queryKey: ["experiments"],
  queryFn: async (): Promise<readonly string[]> =>
    (await get<string[] | null>("/api/v2/experiments")) ?? [],
  staleTime: Infinity,
});
