// Problems of a build with their positions: parsed from the lines of its log, where each Terraform
// diagnostic consists of a summary, a position, the source and a detail
// (coder/provisionerd/terraform/log_lines.py), and from the job's error.
import type { ProvisionerJobLog } from "../../api/types";
import { plainText } from "../../ui/text/ansi";

export interface Problem {
  severity: "error" | "warning";
  title: string;
  detail: string;
  /** Null if the position is unknown. */
  place: { file: string; line: number } | null;
}

const NAME = /^(?:Error|Warning): (.+)$/;
const PLACE = /^on (.+?) line (\d+)\b/;
/** The format of the project's own template parser: file:line,column: message. */
const AT = /^([^\s:]+):(\d+)(?:,\d+(?:-\d+)?)?: (.+)$/;
const FRAME = /^[\s╷│├└╵─]+/;
/**
 * Terraform quotes the template between the position and the detail, followed by the values
 * involved.
 */
const QUOTED = /^\s*(?:\d+:|├|│ .* is |\(source code not available\))/;
/** Terraform's introductory line before diagnostics: it contains nothing to fix. */
const PREFACE = /^Terraform encountered problems during initiali[sz]ation/;
const SEVERITY: Partial<Record<ProvisionerJobLog["log_level"], Problem["severity"]>> = {
  error: "error",
  warn: "warning",
};

const placed = (file: string, line: string): Problem["place"] => ({
  file: file.replace(/^\.\//, ""),
  line: Number(line),
});

export function problemsOf(lines: readonly ProvisionerJobLog[], failure = ""): Problem[] {
  const found: Problem[] = [];
  let last: { problem: Problem; level: ProvisionerJobLog["log_level"] } | null = null;
  for (const line of lines.flatMap((whole) =>
    whole.output.split("\n").map((output) => ({ output, log_level: whole.log_level })),
  )) {
    const severity = SEVERITY[line.log_level];
    const raw = plainText(line.output);
    const text = raw.replace(FRAME, "").trim();
    if (!severity) last = null;
    if (!severity || text === "") continue;
    const named = NAME.exec(text);
    if (named?.[1]) {
      last = {
        problem: { severity, title: named[1], detail: "", place: null },
        level: line.log_level,
      };
      found.push(last.problem);
    } else if (last?.level === line.log_level) {
      const place = PLACE.exec(text);
      if (place?.[1] && place[2] && last.problem.place === null && last.problem.detail === "")
        last.problem.place = placed(place[1], place[2]);
      else if (!QUOTED.test(raw))
        last.problem.detail += `${last.problem.detail === "" ? "" : " "}${text}`;
    } else found.push(alone(severity, text));
  }
  if (failure !== "" && AT.test(failure)) found.push(alone("error", failure));
  const known = found.filter(({ title }) => !PREFACE.test(title));
  return [
    ...new Map(
      (known.length > 0 ? known : found).map((problem) => [JSON.stringify(problem), problem]),
    ).values(),
  ];
}

function alone(severity: Problem["severity"], text: string): Problem {
  const at = AT.exec(text);
  return at?.[1] && at[2] && at[3]
    ? { severity, title: at[3], detail: "", place: placed(at[1], at[2]) }
    : { severity, title: text, detail: "", place: null };
}
