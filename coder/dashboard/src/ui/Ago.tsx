// A relative time, with the exact one in the tooltip. Updates itself.
import { useEffect, useState } from "react";

import { useLongLost } from "../api/connection";
import { ago, dateTime } from "../lib/time";

const EVERY_MS = 30_000;
const LOST_MS = 1000;

export function Ago({ at }: { at: string | null | undefined }) {
  const [, tick] = useState(0);
  const lost = useLongLost();
  useEffect(() => {
    const every = lost ? LOST_MS : EVERY_MS;
    const timer = window.setInterval(() => tick((count) => count + 1), every);
    return () => window.clearInterval(timer);
  }, [lost]);
  return (
    <time dateTime={at ?? undefined} title={dateTime(at)}>
      {ago(at, Date.now(), lost)}
    </time>
  );
}
