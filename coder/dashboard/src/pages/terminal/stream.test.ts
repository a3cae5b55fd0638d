import { afterEach, expect, it, vi } from "vitest";

import { connect, type Screen } from "./stream";
import { soon } from "../../test/soon";

afterEach(() => vi.unstubAllGlobals());

class Socket {
  static readonly OPEN = 1;
  static last: Socket;
  readyState = 0;
  binaryType = "";
  sent: unknown[] = [];
  onopen?: () => void;
  onclose?: (event: { code: number }) => void;
  constructor() {
    Socket.last = this;
  }
  send(data: Uint8Array): void {
    this.sent.push(JSON.parse(new TextDecoder().decode(data)));
  }
  close(): void {
    this.readyState = 3;
  }
  opens(): void {
    this.readyState = 1;
    this.onopen?.();
  }
  breaks(): void {
    this.readyState = 3;
    this.onclose?.({ code: 1006 });
  }
}

function typist() {
  vi.stubGlobal("WebSocket", Socket);
  let type = (_: string): void => undefined;
  const end = { dispose: () => undefined };
  const screen: Screen = {
    cols: 80,
    rows: 24,
    reset: () => undefined,
    write: () => undefined,
    onResize: () => end,
    onData: (listener) => {
      type = listener;
      return end;
    },
  };
  connect(
    screen,
    "",
    "a1",
    { reconnect: "r", command: "", container: "", containerUser: "", trusted: true },
    () => undefined,
  );
  return { types: (text: string) => type(text) };
}

const SIZE = { height: 24, width: 80 };

it("sends input typed before opening", async () => {
  const person = typist();
  person.types("l");
  await soon(() => {
    expect(Socket.last).toBeDefined();
  });
  person.types("s\n");
  Socket.last.opens();
  expect(Socket.last.sent).toEqual([SIZE, { data: "ls\n" }]);
  person.types("x");
  expect(Socket.last.sent.at(-1)).toEqual({ data: "x" });
});

it("sends input typed during a loss, once", async () => {
  const person = typist();
  const socket = Socket.last as Socket | undefined;
  await soon(() => {
    expect(Socket.last).not.toBe(socket);
  });
  const first = Socket.last;
  first.opens();
  first.breaks();
  person.types("back\n");
  person.types("rm -r /tmp/");
  person.types("x".repeat(5000)); // a large paste into an unresponsive terminal
  person.types("\n"); // nor a command whose end was dropped
  await soon(() => {
    expect(Socket.last).not.toBe(first);
  });
  Socket.last.opens();
  expect(Socket.last.sent).toEqual([SIZE, { data: "back\nrm -r /tmp/" }]);
});
