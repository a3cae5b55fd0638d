// A terminal's stream: JSON up, bytes down, reconnecting to the same terminal.
import type { Terminal } from "@xterm/xterm";

import { isAnswer, Replay } from "./replay";
import { streamAddress } from "./stream-address";

export interface TerminalRequest {
  reconnect: string;
  command: string;
  container: string;
  containerUser: string;
  /** The command comes from the template, not from a link. */
  trusted: boolean;
  /** The terminal existed before this page: its recent output comes first. */
  resumed: boolean;
}

/** A connected stream. */
export interface Stream {
  close: () => void;
  /** Whether output that is parsed now may be a replay, whose queries and commands were carried out before. */
  isReplaying: () => boolean;
}

export type TerminalState = "connecting" | "connected" | "disconnected";

/** The methods of xterm.js in use. */
export type Screen = Pick<Terminal, "cols" | "rows" | "onData" | "onResize" | "reset" | "write">;

const FIRST_MS = 400;
const LONGEST_MS = 8000;
const ATTEMPTS = 12;
const HELD_CHARS = 4096; // some lines or a paste; more input than this into an unresponsive terminal is dropped

/** Connect, and reconnect after each loss. */
export function connect(
  screen: Screen,
  base: string,
  agent: string,
  request: TerminalRequest,
  onState: (state: TerminalState) => void,
): Stream {
  const encoder = new TextEncoder();
  let socket: WebSocket | undefined;
  let timer: number | undefined;
  let wait = FIRST_MS;
  let attemptsLeft = ATTEMPTS;
  let closed = false;
  let held = "";
  let full = false;
  let replay = new Replay(false);
  let resumed = request.resumed;
  const send = (value: unknown) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(encoder.encode(JSON.stringify(value)));
  };
  const lost = () => {
    onState("connecting");
    attemptsLeft -= 1;
    timer = window.setTimeout(open, wait);
    wait = Math.min(wait * 2, LONGEST_MS);
  };
  const open = () => {
    onState("connecting");
    const params = {
      reconnect: request.reconnect,
      width: screen.cols,
      height: screen.rows,
      command: request.command,
      container: request.container,
      container_user: request.containerUser,
    };
    // Each attempt has an address of its own: a proxy's ticket is valid for a minute.
    streamAddress(base, agent, params).then(
      (address) => {
        if (!closed) attach(address);
      },
      () => {
        if (closed) return;
        if (attemptsLeft === 0) onState("disconnected");
        else lost();
      },
    );
  };
  const attach = (address: string) => {
    const current = new WebSocket(address);
    current.binaryType = "arraybuffer";
    socket = current;
    current.onopen = () => {
      // The agent first sends the whole screen.
      screen.reset();
      replay.end();
      replay = new Replay(resumed);
      resumed = true;
      wait = FIRST_MS;
      attemptsLeft = ATTEMPTS;
      onState("connected");
      send({ height: screen.rows, width: screen.cols });
      if (held !== "") send({ data: held });
      held = "";
      full = false;
    };
    current.onmessage = (event: MessageEvent<ArrayBuffer | string>) => {
      const { data } = event;
      const bytes = typeof data === "string" ? encoder.encode(data) : new Uint8Array(data);
      screen.write(...replay.receive(bytes));
    };
    current.onclose = (event) => {
      if (closed) return;
      if (event.code === 1000 || attemptsLeft === 0) {
        onState("disconnected");
        return;
      }
      lost();
    };
  };
  // Input typed before the connection opens, or while it is lost, is kept and sent. After an overflow
  // nothing is kept: an Enter would run a command that lacks its middle.
  const typed = screen.onData((data) => {
    if (replay.active && isAnswer(data)) return;
    if (socket?.readyState === WebSocket.OPEN) {
      send({ data });
      return;
    }
    full ||= held.length + data.length > HELD_CHARS;
    if (!full) held += data;
  });
  const sized = screen.onResize(({ cols, rows }) => send({ height: rows, width: cols }));
  open();
  return {
    isReplaying: () => replay.active,
    close: () => {
      closed = true;
      window.clearTimeout(timer);
      replay.end();
      typed.dispose();
      sized.dispose();
      socket?.close();
    },
  };
}
