import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { setSignedOut } from "./connection";
import { openSocket } from "./socket";

interface Opened {
  onopen: (() => void) | null;
  onclose: ((event: { code: number }) => void) | null;
  onmessage: ((event: { data: string }) => void) | null;
  readyState: number;
}

const opened: Opened[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  opened.length = 0;
  vi.stubGlobal(
    "WebSocket",
    class {
      static readonly OPEN = 1;
      static readonly CLOSED = 3;
      onopen = null;
      onclose: ((event: { code: number }) => void) | null = null;
      onmessage = null;
      readyState = 1;
      constructor() {
        opened.push(this);
      }
      close(code = 1005) {
        this.readyState = 3;
        this.onclose?.({ code });
      }
    },
  );
});
afterEach(() => {
  setSignedOut(false);
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function loseConnection(): void {
  const last = opened.at(-1);
  if (!last) return;
  last.readyState = 3;
  last.onclose?.({ code: 1006 });
}

it("reconnects after a loss", () => {
  const end = openSocket(() => "/watch", { onMessage: () => undefined });
  loseConnection();
  vi.advanceTimersByTime(60_000);
  expect(opened).toHaveLength(2);
  end();
});

it("waits for sign-in after the session ended", () => {
  const end = openSocket(() => "/watch", { onMessage: () => undefined });
  setSignedOut(true);
  loseConnection();
  vi.advanceTimersByTime(600_000);
  expect(opened).toHaveLength(1);
  setSignedOut(false);
  expect(opened).toHaveLength(2);
  end();
});

it("stays closed after a normal close", () => {
  const end = openSocket(() => "/watch", { onMessage: () => undefined });
  const last = opened.at(-1);
  if (last) {
    last.readyState = 3;
    last.onclose?.({ code: 1000 });
  }
  setSignedOut(true);
  setSignedOut(false);
  expect(opened).toHaveLength(1);
  end();
});

it("restarts with increasing delays after unreadable messages", () => {
  const messages: unknown[] = [];
  const end = openSocket(() => "/watch", { onMessage: (value) => messages.push(value) });
  opened[0]?.onopen?.();
  opened[0]?.onmessage?.({ data: '{"type": "data", "da' });
  expect(opened).toHaveLength(1);
  vi.advanceTimersByTime(500);
  expect(opened).toHaveLength(2);
  opened[1]?.onopen?.();
  opened[1]?.onmessage?.({ data: "<html>" });
  vi.advanceTimersByTime(500);
  expect(opened).toHaveLength(2);
  vi.advanceTimersByTime(500);
  expect(opened).toHaveLength(3);
  opened[2]?.onopen?.();
  opened[2]?.onmessage?.({ data: '{"type": "data"}' });
  expect(messages).toEqual([{ type: "data" }]);
  end();
});
