import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { setSignedOut } from "./connection";
import { openSocket } from "./socket";

const opened: { onclose: ((event: { code: number }) => void) | null; readyState: number }[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  opened.length = 0;
  vi.stubGlobal("WebSocket", class {
    static readonly OPEN = 1;
    static readonly CLOSED = 3;
    onclose = null;
    readyState = 1;
    constructor() { opened.push(this); }
    close() { this.readyState = 3; }
  });
});
afterEach(() => {
  setSignedOut(false);
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function lose(): void {
  const last = opened.at(-1);
  if (!last) return;
  last.readyState = 3;
  last.onclose?.({ code: 1006 });
}

it("comes back by itself", () => {
  const end = openSocket(() => "/watch", { onMessage: () => undefined });
  lose();
  vi.advanceTimersByTime(60_000);
  expect(opened).toHaveLength(2);
  end();
});

it("waits for signing in when the session has ended", () => {
  const end = openSocket(() => "/watch", { onMessage: () => undefined });
  setSignedOut(true);
  lose();
  vi.advanceTimersByTime(600_000);
  expect(opened).toHaveLength(1);
  setSignedOut(false);
  expect(opened).toHaveLength(2);
  end();
});

it("does not come back after an orderly end", () => {
  const end = openSocket(() => "/watch", { onMessage: () => undefined });
  const last = opened.at(-1);
  if (last) { last.readyState = 3; last.onclose?.({ code: 1000 }); }
  setSignedOut(true);
  setSignedOut(false);
  expect(opened).toHaveLength(1);
  end();
});
