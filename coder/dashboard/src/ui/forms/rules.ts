// Explanations of the server's field rules: it names a rule by its tag, and users read what to
// enter. The tags are those of coder/api/field_rules/rules.py.
import type { ApiError } from "../../api/client";

const NAME =
  "Use up to 32 letters and digits with single hyphens between them. Some words, such as “new”, are reserved.";
const TITLE = "Use at most 64 characters, without leading or trailing spaces.";

export const RULES: Readonly<Record<string, string>> = {
  required: "This field is required.",
  email: "Enter an email address, such as name@example.com.",
  http_url: "Enter a URL that starts with https:// or http://.",
  oneof: "Choose one of the options.",
  lt: "This value is too long.",
  username: NAME,
  workspace_name: NAME,
  template_name: NAME,
  organization_name: NAME,
  oauth2_app_name: NAME,
  group_name: "Use up to 255 letters and digits with single hyphens between them.",
  template_version_name:
    "Use up to 64 letters and digits with single dots, hyphens or underscores between them.",
  user_real_name: "Use at most 128 characters, without leading or trailing spaces.",
  template_display_name: TITLE,
  organization_display_name: TITLE,
  group_display_name: TITLE,
};

const FAILED = /^Validation failed for tag "(\w+)" with value: "/;
const TAKEN = "This value is already in use and should be unique.";

/**
 * One validation as a sentence for its field. A conflict shows the server's message, which names
 * the conflicting object.
 */
export function validationText(
  detail: string,
  error: Pick<ApiError, "status" | "message">,
): string {
  const tag = FAILED.exec(detail)?.[1];
  if (tag !== undefined) return RULES[tag] ?? detail;
  if (error.status !== 409) return asSentence(detail);
  return detail === TAKEN || detail === "" ? error.message : `${error.message} ${detail}`;
}

/**
 * Some server messages are fragments from its command line: "insecure password, try …". Capitalize
 * them, but keep a leading name unchanged.
 */
function asSentence(detail: string): string {
  const text = /^[a-z]+[ ,]/.test(detail)
    ? detail.charAt(0).toUpperCase() + detail.slice(1)
    : detail;
  return text !== detail && /[a-z0-9]$/i.test(text) ? `${text}.` : text;
}
