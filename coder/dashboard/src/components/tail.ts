// A box that stays at its newest line, unless the reader has scrolled up. The page itself never moves.
import { useEffect, useRef } from "react";

const NEAR_PX = 40;

export function useTail(lines: number) {
  const box = useRef<HTMLDivElement>(null);
  const height = useRef(0);
  useEffect(() => {
    const found = box.current;
    if (!found) return;
    const wasAtEnd = found.scrollTop + found.clientHeight >= height.current - NEAR_PX;
    height.current = found.scrollHeight;
    if (wasAtEnd) found.scrollTop = found.scrollHeight;
  }, [lines]);
  return box;
}
