// What the server's rules for fields mean: it names a rule by its tag, people are told what to write. The tags are those
// of coder/api/field_rules/rules.py.
import type { ApiError } from "../../api/client";

const NAME =
  "Letters, digits and single hyphens between them, 32 characters at most; some words, like “new”, are taken.";
const TITLE = "At most 64 characters, without a space at its beginning or end.";

export const RULES: Readonly<Record<string, string>> = {
  required: "This is needed.",
  email: "An email address, like name@example.com.",
  http_url: "An address that begins with https:// or http://.",
  oneof: "This is none of the choices.",
  lt: "This is too long.",
  username: NAME,
  workspace_name: NAME,
  template_name: NAME,
  organization_name: NAME,
  oauth2_app_name: NAME,
  group_name: "Letters, digits and single hyphens between them, 255 characters at most.",
  template_version_name:
    "Letters and digits, with single dots, hyphens or underscores between them, 64 characters at most.",
  user_real_name: "At most 128 characters, without a space at its beginning or end.",
  template_display_name: TITLE,
  organization_display_name: TITLE,
  group_display_name: TITLE,
};

const FAILED = /^Validation failed for tag "(\w+)" with value: "/;
const TAKEN = "This value is already in use and should be unique.";

/** One validation as a sentence for its field. A conflict is told by the message, which names what is in the way. */
export function validationText(
  detail: string,
  error: Pick<ApiError, "status" | "message">,
): string {
  const tag = FAILED.exec(detail)?.[1];
  if (tag !== undefined) return RULES[tag] ?? detail;
  if (error.status !== 409) return asSentence(detail);
  return detail === TAKEN || detail === "" ? error.message : `${error.message} ${detail}`;
}

/** Some of the server's words are the end of a line of its command: "insecure password, try …". A name at the beginning stays
 * as it is. */
function asSentence(detail: string): string {
  const text = /^[a-z]+[ ,]/.test(detail)
    ? detail.charAt(0).toUpperCase() + detail.slice(1)
    : detail;
  return text !== detail && /[a-z0-9]$/i.test(text) ? `${text}.` : text;
}
