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
  location: { file: string; line: number } | null;
}

const NAME = /^(?:Error|Warning): (.+)$/;
const POSITION = /^on (.+?) line (\d+)\b/;
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

const placed = (file: string, line: string): Problem["location"] => ({
  file: file.replace(/^\.\//, ""),
  line: Number(line),
});

export function problemsOf(lines: readonly ProvisionerJobLog[], failure = ""): Problem[] {
  const problems: Problem[] = [];
  let last: { problem: Problem; level: ProvisionerJobLog["log_level"] } | null = null;
  for (const line of lines.flatMap((entry) =>
    entry.output.split("\n").map((output) => ({ output, log_level: entry.log_level })),
  )) {
    const severity = SEVERITY[line.log_level];
    const raw = plainText(line.output);
    const text = raw.replace(FRAME, "").trim();
    if (!severity) last = null;
    if (!severity || text === "") continue;
    const named = NAME.exec(text);
    if (named?.[1]) {
      last = {
        problem: { severity, title: named[1], detail: "", location: null },
        level: line.log_level,
      };
      problems.push(last.problem);
    } else if (last?.level === line.log_level) {
      const match = POSITION.exec(text);
      if (match?.[1] && match[2] && last.problem.location === null && last.problem.detail === "")
        last.problem.location = placed(match[1], match[2]);
      else if (!QUOTED.test(raw))
        last.problem.detail += `${last.problem.detail === "" ? "" : " "}${text}`;
    } else problems.push(withoutRepeats(severity, text));
  }
  if (failure !== "" && AT.test(failure)) problems.push(withoutRepeats("error", failure));
  const specific = problems.filter(({ title }) => !PREFACE.test(title));
  return [
    ...new Map(
      (specific.length > 0 ? specific : problems).map((problem) => [
        JSON.stringify(problem),
        problem,
      ]),
    ).values(),
  ];
}

function withoutRepeats(severity: Problem["severity"], text: string): Problem {
  const at = AT.exec(text);
  return at?.[1] && at[2] && at[3]
    ? { severity, title: at[3], detail: "", location: placed(at[1], at[2]) }
    : { severity, title: text, detail: "", location: null };
}
