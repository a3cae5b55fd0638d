// Short descriptions of the roles; the exact permissions are on the roles pages.
export const SITE_ROLE_HINTS: Readonly<Record<string, string>> = {
  owner: "Full access. Grant sparingly.",
  "user-admin": "Creates, updates and deletes users and groups.",
  "template-admin": "Creates and updates all templates; views all workspaces.",
  auditor: "Views the audit log, users, groups and settings; changes nothing.",
};

export const ORGANIZATION_ROLE_HINTS: Readonly<Record<string, string>> = {
  "organization-admin": "Full access within this organization.",
  "organization-user-admin": "Manages members, groups and their roles.",
  "organization-template-admin": "Manages templates, provisioners and their jobs.",
  "organization-auditor": "Views the organization's audit log; changes nothing.",
  "organization-workspace-access": "Can have workspaces of their own.",
  "organization-workspace-creation-ban": "Cannot create or delete workspaces.",
  "agents-access": "Works with AI agents.",
};

/** A generated password without letters that are easily mistaken for each other. */
export function randomPassword(length = 20): string {
  const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789-_";
  const bytes = crypto.getRandomValues(new Uint8Array(length * 2));
  const usable = [...bytes].filter((byte) => byte < 256 - (256 % letters.length)); // all letters are equally likely
  return usable
    .slice(0, length)
    .map((byte) => letters[byte % letters.length])
    .join("")
    .padEnd(length, "7");
}
