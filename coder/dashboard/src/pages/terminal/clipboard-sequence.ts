// OSC 52: a program in the terminal writes the clipboard, as tmux and Neovim do over SSH. It cannot
// read it.
import type { Terminal } from "@xterm/xterm";

/** Characters of Base64 that are accepted. */
const MOST = 1 << 20;

/** Return the text of an OSC 52 sequence ("c;BASE64"), or null for a query and for anything malformed. */
export function copiedText(sequence: string): string | null {
  const data = /^[cpqs0-7]*;([A-Za-z0-9+/]+={0,2})$/.exec(sequence)?.[1];
  if (data === undefined || data.length > MOST) return null;
  try {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Call `copy` for each text that a program copies, except during a replay. */
export function onProgramCopy(
  screen: Terminal,
  isReplaying: () => boolean,
  copy: (text: string) => void,
): void {
  screen.parser.registerOscHandler(52, (sequence) => {
    const text = isReplaying() ? null : copiedText(sequence);
    if (text !== null) copy(text);
    return true;
  });
}
