import { expect, it } from "vitest";

import type { ProvisionerJobLog } from "../../api/types";
import { problemsOf } from "./problems";

const log = (...lines: [level: string, output: string][]) =>
  lines.map(
    ([log_level, output], id) =>
      ({
        id,
        log_level,
        output,
        stage: "",
        created_at: "",
        log_source: "provisioner",
      }) as ProvisionerJobLog,
  );

it.each<[string, [string, string][], ReturnType<typeof problemsOf>]>([
  [
    "a diagnostic with its place",
    [
      ["info", "Initializing"],
      ["error", "Error: Unclosed configuration block"],
      ["error", 'on main.tf line 12, in resource "null_resource" "a":'],
      ["error", ' 12: resource "null_resource" "a" {'],
      ["error", ""],
      ["error", "There is no closing brace."],
      ["error", "Add one."],
    ],
    [
      {
        severity: "error",
        title: "Unclosed configuration block",
        detail: "There is no closing brace. Add one.",
        location: { file: "main.tf", line: 12 },
      },
    ],
  ],
  [
    "values that took part are no part of the sentence",
    [
      ["error", "Error: Invalid value"],
      ["error", "on modules/a/b.tf line 3:"],
      ["error", "  3: count = var.n"],
      ["error", "    ├────────────────"],
      ["error", "    │ var.n is 7"],
      ["error", ""],
      ["error", "Too many."],
    ],
    [
      {
        severity: "error",
        title: "Invalid value",
        detail: "Too many.",
        location: { file: "modules/a/b.tf", line: 3 },
      },
    ],
  ],
  [
    "several, warnings among them, each once",
    [
      ["warn", "Warning: Deprecated"],
      ["warn", "on ./old.tf line 1:"],
      ["warn", "  (source code not available)"],
      ["error", "Error: One"],
      ["error", "Error: Two"],
      ["error", "on b.tf line 2:"],
      ["info", "between"],
      ["error", "Error: One"],
    ],
    [
      {
        severity: "warning",
        title: "Deprecated",
        detail: "",
        location: { file: "old.tf", line: 1 },
      },
      { severity: "error", title: "One", detail: "", location: null },
      { severity: "error", title: "Two", detail: "", location: { file: "b.tf", line: 2 } },
    ],
  ],
  [
    "in a frame and colours",
    [
      ["error", "\u001b[31m╷\u001b[0m"],
      ["error", "\u001b[31m│\u001b[0m \u001b[31mError: \u001b[0mBad"],
      ["error", "│   on main.tf line 4:"],
      ["error", "│ Mend it."],
      ["error", "╵"],
    ],
    [
      {
        severity: "error",
        title: "Bad",
        detail: "Mend it.",
        location: { file: "main.tf", line: 4 },
      },
    ],
  ],
  [
    "a line of its own",
    [
      ["info", "x"],
      ["error", "the program ended with status 1"],
      ["info", "y"],
      ["error", "main.tf:3,5: expected a value"],
    ],
    [
      { severity: "error", title: "the program ended with status 1", detail: "", location: null },
      {
        severity: "error",
        title: "expected a value",
        detail: "",
        location: { file: "main.tf", line: 3 },
      },
    ],
  ],
  [
    "what Terraform says of initialising is a preface, whole in one line of the log",
    [
      ["error", "Error: Unclosed configuration block"],
      ["error", "on main.tf line 2:"],
      ["error", "There is no closing brace."],
      [
        "error",
        "Error: Terraform encountered problems during initialisation, including problems\n" +
          "with the configuration, described below.\n\nThe Terraform configuration must be " +
          "valid before initialization.",
      ],
    ],
    [
      {
        severity: "error",
        title: "Unclosed configuration block",
        detail: "There is no closing brace.",
        location: { file: "main.tf", line: 2 },
      },
    ],
  ],
  [
    "and shown where it is all there is",
    [["error", "Error: Terraform encountered problems during initialisation\nNo more is known."]],
    [
      {
        severity: "error",
        title: "Terraform encountered problems during initialisation",
        detail: "No more is known.",
        location: null,
      },
    ],
  ],
  [
    "nothing",
    [
      ["info", "Error: is a word here"],
      ["debug", "on main.tf line 1:"],
    ],
    [],
  ],
])("%s", (_, lines, problems) => {
  expect(problemsOf(log(...lines))).toEqual(problems);
});

it("parses the position in the job's error", () => {
  expect(problemsOf([], "main.tf:7,1-4: unknown block")).toEqual([
    {
      severity: "error",
      title: "unknown block",
      detail: "",
      location: { file: "main.tf", line: 7 },
    },
  ]);
  expect(problemsOf([], "exit status 1")).toEqual([]);
});
