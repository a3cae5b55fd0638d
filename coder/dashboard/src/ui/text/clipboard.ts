// Copies text. The clipboard interface exists only on HTTPS and localhost; a plain-HTTP deployment has the old way.
import { toast } from "../toast";

/** Whether it is on the clipboard. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // permission refused: fall through
    }
  }
  // Beside what was clicked: a dialog takes the keyboard back from whatever is outside of it, and nothing would be selected.
  const before = document.activeElement instanceof HTMLElement ? document.activeElement : null;
  const area = document.createElement("textarea");
  area.value = text;
  area.readOnly = true; // no keyboard comes up on a phone
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

/** The same for a button: a browser that refuses is no reason to say "Copied" of a token that is shown once. */
export async function copyOrTell(text: string): Promise<boolean> {
  const done = await copyText(text);
  if (!done)
    toast.failed(
      "The browser did not let it be copied",
      new Error("Select the text and copy it by hand."),
    );
  return done;
}
