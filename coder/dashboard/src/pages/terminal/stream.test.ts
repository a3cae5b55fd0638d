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
  onmessage?: (event: { data: ArrayBuffer }) => void;
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
  receives(bytes: Uint8Array | string): void {
    const data = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes;
    this.onmessage?.({ data: data.slice().buffer });
  }
  breaks(): void {
    this.readyState = 3;
    this.onclose?.({ code: 1006 });
  }
}

// Like xterm.js: output is parsed later, and each query in it is answered.
function typist(resumed = false) {
  vi.stubGlobal("WebSocket", Socket);
  let type = (_: string): void => undefined;
  const written: string[] = [];
  const end = { dispose: () => undefined };
  const screen: Screen = {
    cols: 80,
    rows: 24,
    reset: () => undefined,
    write: (data, parsed) =>
      queueMicrotask(() => {
        const text = typeof data === "string" ? data : new TextDecoder().decode(data);
        written.push(text);
        if (text.includes("\x1b[6n")) type("\x1b[1;2R");
        if (text.includes("\x1b[c")) type("\x1b[?1;2c");
        parsed?.();
      }),
    onResize: () => end,
    onData: (listener) => {
      type = listener;
      return end;
    },
  };
  const stream = connect(
    screen,
    "",
    "a1",
    { reconnect: "r", command: "", container: "", containerUser: "", trusted: true, resumed },
    () => undefined,
  );
  return { types: (text: string) => type(text), written, stream };
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

const attached = async (resumed: boolean) => {
  const before = Socket.last as Socket | undefined;
  const person = typist(resumed);
  await soon(() => {
    expect(Socket.last).not.toBe(before);
  });
  Socket.last.opens();
  return { ...person, socket: Socket.last };
};
const parsed = () => new Promise((done) => setTimeout(done, 0));

it("answers the queries of a new terminal", async () => {
  const { socket } = await attached(false);
  socket.receives("\x1b[6n\x1b[c");
  await parsed();
  expect(socket.sent).toEqual([SIZE, { data: "\x1b[1;2R" }, { data: "\x1b[?1;2c" }]);
});

it("answers no query of a replay, and answers later ones", async () => {
  const { socket, types, stream } = await attached(true);
  socket.receives("prompt$ \x1b[6n\x1b[c");
  types("\x1b[A");
  await parsed();
  expect(socket.sent).toEqual([SIZE, { data: "\x1b[A" }]);
  await soon(() => {
    expect(stream.isReplaying()).toBe(false);
  });
  socket.receives("\x1b[6n");
  await parsed();
  expect(socket.sent.at(-1)).toEqual({ data: "\x1b[1;2R" });
});

it("takes output after a loss for a replay that begins with a character", async () => {
  const { socket, written } = await attached(false);
  socket.receives("a");
  socket.breaks();
  await soon(() => {
    expect(Socket.last).not.toBe(socket);
  });
  Socket.last.opens();
  Socket.last.receives(new TextEncoder().encode("中文\x1b[6n").subarray(1));
  await parsed();
  expect(written).toEqual(["a", "文\x1b[6n"]);
  expect(Socket.last.sent).toEqual([SIZE]);
});

it("ends a replay at its size limit", async () => {
  const { socket, stream } = await attached(true);
  socket.receives("x".repeat(64 << 10));
  await parsed();
  expect(stream.isReplaying()).toBe(false);
});
