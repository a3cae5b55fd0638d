// The log of a running build: stages as headings, lines below.
import { useMemo } from "react";

import type { ProvisionerJobLog } from "../../api/types";
import { LogView, type LogLine } from "../../ui/text/LogView";
import { useBuildLog } from "./logs";

export function jobLines(lines: readonly ProvisionerJobLog[]): LogLine[] {
  return lines.map((line) => ({
    id: line.id,
    text: line.output,
    level: line.log_level,
    at: line.created_at,
    stage: line.stage,
  }));
}

/** Text shown in place of a log without lines. */
export const emptyLog = (ended: boolean) =>
  ended ? "The build ended before it logged anything." : "Waiting for a provisioner…";

interface BuildLogProps {
  build: string;
  height?: string;
  steady?: boolean;
}

export function BuildLog({ build, height, steady = false }: BuildLogProps) {
  const { lines, ended } = useBuildLog(build);
  const shown = useMemo(() => jobLines(lines), [lines]);
  return (
    <LogView
      label="Build log"
      lines={shown}
      testId="build-log"
      empty={emptyLog(ended)}
      steady={steady}
      {...(height ? { height } : {})}
    />
  );
}
