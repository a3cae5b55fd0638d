// What the roles are good for, in a sentence each; the exact permissions are on the roles pages.
export const SITE_ROLE_HINTS: Readonly<Record<string, string>> = {
  owner: "Everything, everywhere. Give it to few.",
  "user-admin": "Makes, changes and removes people and groups.",
  "template-admin": "Makes and changes every template; sees every workspace.",
  auditor: "Reads the audit log, users, groups and settings; changes nothing.",
};

export const ORGANIZATION_ROLE_HINTS: Readonly<Record<string, string>> = {
  "organization-admin": "Everything inside of this organization.",
  "organization-user-admin": "Members, groups and their roles.",
  "organization-template-admin": "Templates, provisioners and their jobs.",
  "organization-auditor": "Reads the organization's audit log; changes nothing.",
  "organization-workspace-access": "Has workspaces of their own.",
  "organization-workspace-creation-ban": "Takes away making and deleting workspaces.",
  "agents-access": "Works with AI agents.",
};

/** A password nobody has to think of: letters that are not mistaken for each other. */
export function randomPassword(length = 20): string {
  const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789-_";
  const bytes = crypto.getRandomValues(new Uint8Array(length * 2));
  const usable = [...bytes].filter((byte) => byte < 256 - (256 % letters.length)); // every letter as likely
  return usable
    .slice(0, length)
    .map((byte) => letters[byte % letters.length])
    .join("")
    .padEnd(length, "7");
}
