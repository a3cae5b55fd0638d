// Messages above the sign-in form. The address carries the text, as other programs expect; only the
// product's own messages are shown, or a link could inject text into the page.
export const PASSWORD_CHANGED = "Your password was changed. Sign in with the new password.";

const KNOWN: ReadonlySet<string> = new Set([
  PASSWORD_CHANGED,
  "You are signed out or your session has expired. Please sign in again to continue.",
]);

export function knownMessage(text: string | null): string | null {
  return text !== null && KNOWN.has(text) ? text : null;
}
