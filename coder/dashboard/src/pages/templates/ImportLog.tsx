// The log of a version's import while it runs, and its result.
import { useMemo } from "react";

import { LogView } from "../../ui/text/LogView";
import { emptyLog, jobLines } from "../../features/build/BuildLog";
import { useVersionLog } from "../../features/build/logs";

export function ImportLog({ version, height = "18rem" }: { version: string; height?: string }) {
  const { lines, ended } = useVersionLog(version);
  const shown = useMemo(() => jobLines(lines), [lines]);
  return (
    <LogView
      label="Build log"
      lines={shown}
      height={height}
      empty={emptyLog(ended)}
      testId="import-log"
    />
  );
}
