// Pasted text of several lines runs line by line in a program without bracketed paste.
import type { Terminal } from "@xterm/xterm";

/** Number of lines that would run: a final line break runs the last one. */
export const pastedLines = (text: string): number =>
  text.split(/\r\n|\r|\n/).filter((line, at, all) => at < all.length - 1 || line !== "").length;

/**
 * Call `ask` instead of pasting several lines. With bracketed paste the program receives the text
 * as one piece and runs nothing. Returns the function that stops it.
 */
export function guardPaste(
  element: HTMLElement,
  screen: Pick<Terminal, "modes">,
  ask: (text: string) => void,
): () => void {
  const pasted = (event: ClipboardEvent) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (screen.modes.bracketedPasteMode || pastedLines(text) < 2) return;
    event.preventDefault();
    event.stopPropagation();
    ask(text);
  };
  element.addEventListener("paste", pasted, true);
  return () => element.removeEventListener("paste", pasted, true);
}
