import type { Terminal } from "@xterm/xterm";
import { expect, it, vi } from "vitest";

import { drawBy } from "./renderer";

const addonState = vi.hoisted(() => ({ lose: [] as (() => void)[], disposed: 0 }));
vi.mock("@xterm/addon-webgl", () => ({
  WebglAddon: class {
    onContextLoss(listener: () => void) {
      addonState.lose.push(listener);
    }
    dispose() {
      addonState.disposed += 1;
    }
  },
}));

function screen(works = true, shown = true) {
  const addons: unknown[] = [];
  const element = document.createElement("div");
  if (shown) document.body.append(element);
  return {
    addons,
    terminal: {
      element,
      loadAddon: (addon: unknown) => {
        if (!works) throw new Error("no WebGL");
        addons.push(addon);
      },
    } as unknown as Terminal,
  };
}

it.each([
  ["webgl", 1],
  ["canvas", 0],
  ["dom", 0],
  ["", 0],
])("%j: draws with %i addons", async (renderer, count) => {
  const { addons, terminal } = screen();
  await drawBy(terminal, renderer);
  expect(addons).toHaveLength(count);
});

it("falls back to the DOM without a graphics context", async () => {
  addonState.disposed = 0;
  await drawBy(screen(false).terminal, "webgl");
  expect(addonState.disposed).toBe(1);
  await drawBy(screen().terminal, "webgl");
  addonState.lose.at(-1)?.();
  expect(addonState.disposed).toBe(2);
});

it("draws nothing after unmounting", async () => {
  const { addons, terminal } = screen(true, false);
  await drawBy(terminal, "webgl");
  expect(addons).toEqual([]);
});
