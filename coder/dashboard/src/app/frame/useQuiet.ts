// Whether the page has what it needs, so that the rest may load.
import { useIsFetching } from "@tanstack/react-query";
import { useEffect, useState } from "react";

const PAUSE_MS = 150;
const LIMIT_MS = 4000;

/** Return true once no request has been pending for a moment, at the latest after some seconds; it stays true. */
export function useQuiet(): boolean {
  const [quiet, setQuiet] = useState(false);
  const fetching = useIsFetching() > 0;
  useEffect(() => {
    if (quiet || fetching) return;
    const timer = window.setTimeout(() => setQuiet(true), PAUSE_MS);
    return () => window.clearTimeout(timer);
  }, [quiet, fetching]);
  useEffect(() => {
    const timer = window.setTimeout(() => setQuiet(true), LIMIT_MS);
    return () => window.clearTimeout(timer);
  }, []);
  return quiet;
}
