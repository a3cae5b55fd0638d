// The text of a search field that is kept in the address: the field updates at once, the address a
// little later.
import { useCallback, useEffect, useRef, useState } from "react";

const SETTLE_MS = 250; // the user is still typing

interface Typed {
  text: string;
  setText: (next: string) => void;
  /** Updates the address at once. */
  send: (next: string) => void;
  /** Shows it and updates the address at once, discarding pending input. */
  choose: (next: string) => void;
}

/** `kept` is the address's text, `keep` updates the address. */
export function useTyped(kept: string, keep: (next: string) => void): Typed {
  const [text, setText] = useState(kept);
  const updater = useRef(keep);
  const seen = useRef(kept);
  const sent = useRef<string[]>([]); // sent texts that have not come back yet, oldest first
  useEffect(() => {
    updater.current = keep;
  });
  useEffect(() => {
    // The echo of a sent text is ignored: it would overwrite what the user has typed since. Texts sent
    // before it without an echo were superseded, and must not count as changes later.
    const index = sent.current.lastIndexOf(kept);
    if (index < 0) return;
    sent.current.splice(0, index + 1);
    seen.current = kept;
  });
  useEffect(() => {
    if (kept === seen.current) return;
    seen.current = kept;
    sent.current = [];
    setText(kept);
  }, [kept]);
  const send = useCallback((next: string) => {
    sent.current.push(next);
    updater.current(next);
  }, []);
  useEffect(() => {
    if (text === kept) return;
    const timer = window.setTimeout(() => {
      if (sent.current.at(-1) !== text) send(text);
    }, SETTLE_MS);
    return () => window.clearTimeout(timer);
  }, [text, kept, send]);
  const choose = useCallback(
    (next: string) => {
      setText(next);
      send(next);
    },
    [send],
  );
  return { text, setText, send, choose };
}
