// The errors of a failed build or import: the job itself often knows only the exit status of a
// program.
import type { ProvisionerJobLog } from "../../api/types";
import { plainText } from "../../ui/text/ansi";
import { useBuildLog, useVersionLog } from "./logs";

const SHOWN = 4;
/**
 * Terraform quotes the template between the name of an error and its explanation: the log has the
 * full text.
 */
const QUOTED = /^\s*(?:[╷│├└╵]|\d+:)/;

export const FirstErrors = ({ build, most }: { build: string; most?: number }) => (
  <Errors lines={useBuildLog(build).lines} most={most} />
);
export const FirstImportErrors = ({ version, most }: { version: string; most?: number }) => (
  <Errors lines={useVersionLog(version).lines} most={most} />
);

function Errors({
  lines,
  most = SHOWN,
}: {
  lines: readonly ProvisionerJobLog[];
  most?: number | undefined;
}) {
  const errors = lines
    .filter(
      (line) =>
        line.log_level === "error" &&
        line.output.trim() !== "" &&
        !QUOTED.test(plainText(line.output)),
    )
    .slice(0, most);
  if (errors.length === 0) return null;
  return (
    <ul
      aria-label="First errors of the log"
      className="mt-1 flex flex-col gap-0.5 font-mono text-xs text-text"
    >
      {errors.map((line) => (
        <li key={line.id}>{plainText(line.output)}</li>
      ))}
    </ul>
  );
}
