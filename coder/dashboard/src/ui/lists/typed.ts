// What a person types into a field whose words the address keeps: they are the person's at once, and the address gets them
// a little later.
import { useCallback, useEffect, useRef, useState } from "react";

const SETTLE_MS = 250; // a person is still typing

interface Typed {
  text: string;
  setText: (next: string) => void;
  /** Tells it at once. */
  send: (next: string) => void;
  /** Shows it and tells it at once, whatever was typed and not told yet. */
  choose: (next: string) => void;
}

/** `kept` is what the address has, `keep` gives it something new. */
export function useTyped(kept: string, keep: (next: string) => void): Typed {
  const [text, setText] = useState(kept);
  const teller = useRef(keep);
  const seen = useRef(kept);
  const sent = useRef<string[]>([]); // what has not come back yet, oldest first
  useEffect(() => {
    teller.current = keep;
  });
  useEffect(() => {
    // What comes back of what was sent is no news: who typed on meanwhile would lose it. What was sent before it and did
    // not come back was overtaken, and would be news later on.
    const place = sent.current.lastIndexOf(kept);
    if (place < 0) return;
    sent.current.splice(0, place + 1);
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
    teller.current(next);
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
