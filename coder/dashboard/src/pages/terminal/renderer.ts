// What draws a terminal: xterm.js itself, by elements of the page, or the graphics card. The deployment chooses
// (`--web-terminal-renderer`); xterm.js has no canvas of its own any more, so "canvas" is what it draws itself.
import type { Terminal } from "@xterm/xterm";

import { pageText } from "../../api/meta";

const chosen = pageText("web-terminal-renderer");

/** Where there is no graphics card to be had, and once it is lost, xterm.js draws itself. */
export async function drawBy(screen: Terminal, renderer = chosen): Promise<void> {
  if (renderer !== "webgl") return;
  const { WebglAddon } = await import("@xterm/addon-webgl");
  if (screen.element === undefined || !screen.element.isConnected) return; // left meanwhile
  const addon = new WebglAddon();
  addon.onContextLoss(() => addon.dispose());
  try {
    screen.loadAddon(addon);
  } catch {
    addon.dispose();
  }
}
