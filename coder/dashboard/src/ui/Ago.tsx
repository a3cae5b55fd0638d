// A relative time, with the exact one in the tooltip. Updates itself.
import { useEffect, useState } from "react";

import { ago, dateTime } from "../lib/time";

const EVERY_MS = 30_000;

export function Ago({ at }: { at: string | null | undefined }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = window.setInterval(() => tick((count) => count + 1), EVERY_MS);
    return () => window.clearInterval(timer);
  }, []);
  return (
    <time dateTime={at ?? undefined} title={dateTime(at)}>
      {ago(at)}
    </time>
  );
}
