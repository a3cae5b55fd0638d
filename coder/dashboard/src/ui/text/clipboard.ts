// Copies text. The clipboard API exists only on HTTPS and localhost; a plain-HTTP deployment falls
// back to `execCommand`.
import { toast } from "../toast";

/** Whether the text was copied. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // permission refused: fall through
    }
  }
  // Next to the clicked element: a dialog takes the focus back from anything outside it, and nothing
  // would be selected.
  const before = document.activeElement instanceof HTMLElement ? document.activeElement : null;
  const area = document.createElement("textarea");
  area.value = text;
  area.readOnly = true; // keeps a phone's keyboard closed
  area.style.position = "fixed";
  area.style.opacity = "0";
  (before?.closest('[role="dialog"]') ?? document.body).append(area);
  area.focus({ preventScroll: true });
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  before?.focus({ preventScroll: true });
  return done;
}

/**
 * The same for a button: it must not claim "Copied" for a token shown once if the browser refused.
 */
export async function copyOrReport(text: string): Promise<boolean> {
  const done = await copyText(text);
  if (!done)
    toast.failed(
      "Failed to copy",
      new Error("The browser did not allow it. Select the text and copy it by hand."),
    );
  return done;
}
