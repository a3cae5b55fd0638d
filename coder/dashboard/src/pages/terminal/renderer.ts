// The renderer of a terminal: DOM or WebGL. The deployment chooses (`--web-terminal-renderer`);
// xterm.js has dropped its canvas renderer, so "canvas" means DOM.
import type { Terminal } from "@xterm/xterm";

import { pageText } from "../../api/meta";

const chosen = pageText("web-terminal-renderer");

/** Without a graphics context, or after losing it, xterm.js falls back to the DOM. */
export async function drawBy(screen: Terminal, renderer = chosen): Promise<void> {
  if (renderer !== "webgl") return;
  const { WebglAddon } = await import("@xterm/addon-webgl");
  if (screen.element === undefined || !screen.element.isConnected) return; // unmounted meanwhile
  const addon = new WebglAddon();
  addon.onContextLoss(() => addon.dispose());
  try {
    screen.loadAddon(addon);
  } catch {
    addon.dispose();
  }
}
