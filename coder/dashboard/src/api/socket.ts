// A WebSocket that reconnects: it waits longer after each failure, retries at once when the machine
// is online again, and reports itself as lost in `connection.ts`. It does not reconnect after a
// normal close by the server.
import { useEffect, useRef } from "react";

import { socketUrl } from "./client";
import { isSignedOut, onSignedIn, setAwaited, setLost } from "./connection";

const FIRST_MS = 500;
const LONGEST_MS = 10_000;
const FIRST_MESSAGE_MS = 300; // an empty log sends nothing after it opens
const UNREADABLE = 4000; // from the range that browsers leave to applications

export interface SocketHandlers {
  onMessage: (data: unknown) => void;
  /** Called each time the socket opens, also after a loss. */
  onOpen?: (send: (value: unknown) => void) => void;
  /** The server has closed it normally: nothing more will come. */
  onEnd?: () => void;
}

function read(text: string): { value: unknown } | null {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

/**
 * `path` is evaluated for each attempt, so that it can say where to resume. Returns the function
 * that closes the connection.
 */
export function openSocket(path: () => string, handlers: SocketHandlers): () => void {
  const connection = Symbol("socket");
  let socket: WebSocket | null = null;
  let timer: number | undefined;
  let wait = FIRST_MS;
  let closed = false;
  let ended = false;
  let unreadable = false;
  const open = () => {
    window.clearTimeout(timer);
    if (isSignedOut()) return; // it reconnects when the user has signed in again
    const current = new WebSocket(socketUrl(path()));
    socket = current;
    current.onopen = () => {
      window.setTimeout(() => setAwaited(connection, false), FIRST_MESSAGE_MS);
      if (!unreadable) wait = FIRST_MS;
      setLost(connection, false);
      handlers.onOpen?.((value) => {
        if (current.readyState === WebSocket.OPEN) current.send(JSON.stringify(value));
      });
    };
    current.onmessage = (event: MessageEvent<string>) => {
      setAwaited(connection, false);
      const message = read(event.data);
      unreadable = message === null;
      // The lost message may have been the state that all later ones build on: start over instead of
      // resuming without it.
      if (message === null) current.close(UNREADABLE, "unreadable");
      else handlers.onMessage(message.value);
    };
    current.onclose = (event) => {
      setAwaited(connection, false);
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
  const unsubscribe = onSignedIn(() => {
    wait = FIRST_MS;
    online();
  });
  setAwaited(connection, true);
  open();
  return () => {
    closed = true;
    setAwaited(connection, false);
    unsubscribe();
    window.clearTimeout(timer);
    window.removeEventListener("online", online);
    setLost(connection, false);
    socket?.close();
  };
}

/**
 * The same for a component; null for no connection. Handlers may change between renders without a
 * new connection.
 */
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
