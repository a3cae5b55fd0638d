// A WebSocket that comes back: waits longer after each failure, begins at once when the machine is online again, and
// says in `connection.ts` that it is lost. An orderly end by the server is the end.
import { useEffect, useRef } from "react";

import { socketUrl } from "./client";
import { isSignedOut, onSignedIn, setLost } from "./connection";

const FIRST_MS = 500;
const LONGEST_MS = 10_000;
const UNREADABLE = 4000; // of the range browsers leave to programs

export interface SocketHandlers {
  onMessage: (data: unknown) => void;
  /** Each time it is open, again after a loss. */
  onOpen?: (send: (value: unknown) => void) => void;
  /** The server has ended it in order: nothing more will come. */
  onEnd?: () => void;
}

function read(text: string): { value: unknown } | null {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

/** `path` is asked anew for each attempt, so that it can say where to go on. Ends by the function returned. */
export function openSocket(path: () => string, handlers: SocketHandlers): () => void {
  const connection = Symbol("socket");
  let socket: WebSocket | null = null;
  let timer: number | undefined;
  let wait = FIRST_MS;
  let closed = false;
  let ended = false;
  let spoiled = false;
  const open = () => {
    window.clearTimeout(timer);
    if (isSignedOut()) return; // it goes on when somebody has signed in again
    const current = new WebSocket(socketUrl(path()));
    socket = current;
    current.onopen = () => {
      if (!spoiled) wait = FIRST_MS;
      setLost(connection, false);
      handlers.onOpen?.((value) => {
        if (current.readyState === WebSocket.OPEN) current.send(JSON.stringify(value));
      });
    };
    current.onmessage = (event: MessageEvent<string>) => {
      const message = read(event.data);
      spoiled = message === null;
      // What was lost may have been the state of everything after: from the start again, not on without it.
      if (message === null) current.close(UNREADABLE, "unreadable");
      else handlers.onMessage(message.value);
    };
    current.onclose = (event) => {
      if (closed) return;
      if (event.code === 1000) {
        ended = true;
        handlers.onEnd?.();
        return;
      }
      setLost(connection, true);
      timer = window.setTimeout(open, wait);
      wait = Math.min(wait * 2, LONGEST_MS);
    };
  };
  const online = () => {
    if (!ended && (socket === null || socket.readyState === WebSocket.CLOSED)) open();
  };
  window.addEventListener("online", online);
  const forget = onSignedIn(() => {
    wait = FIRST_MS;
    online();
  });
  open();
  return () => {
    closed = true;
    forget();
    window.clearTimeout(timer);
    window.removeEventListener("online", online);
    setLost(connection, false);
    socket?.close();
  };
}

/** The same for a component; null for no connection. Handlers may change between renders without a new connection. */
export function useSocket(path: string | null, handlers: SocketHandlers): void {
  const current = useRef(handlers);
  useEffect(() => {
    current.current = handlers;
  });
  useEffect(() => {
    if (path === null) return;
    return openSocket(() => path, {
      onMessage: (data) => current.current.onMessage(data),
      onOpen: (send) => current.current.onOpen?.(send),
      onEnd: () => current.current.onEnd?.(),
    });
  }, [path]);
}
