// What the sign-in page says above its form. The address carries the text, as other programs expect it to; only what this
// product itself sends is shown, or a link could put words into its mouth.
export const PASSWORD_CHANGED = "Your password is changed. Sign in with the new one.";

const KNOWN: ReadonlySet<string> = new Set([
  PASSWORD_CHANGED,
  "You are signed out or your session has expired. Please sign in again to continue.",
]);

export function knownMessage(text: string | null): string | null {
  return text !== null && KNOWN.has(text) ? text : null;
}
