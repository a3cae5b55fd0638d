// The log of a build while it runs: stages as headings, lines below.
import { useMemo } from "react";

import type { ProvisionerJobLog } from "../../../api/types";
import { LogView, type LogLine } from "../../../ui/text/LogView";
import { useBuildLog } from "../logs";

export function jobLines(lines: readonly ProvisionerJobLog[]): LogLine[] {
  return lines.map((line) => ({ id: line.id, text: line.output, level: line.log_level, at: line.created_at, stage: line.stage }));
}

export function BuildLog({ build, height }: { build: string; height?: string }) {
  const { lines } = useBuildLog(build);
  const shown = useMemo(() => jobLines(lines), [lines]);
  return <LogView label="Build log" lines={shown} testId="build-log" empty="Waiting for a provisioner…" {...(height ? { height } : {})} />;
}
