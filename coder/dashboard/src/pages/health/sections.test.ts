import { expect, it } from "vitest";

import type { HealthcheckReport } from "../../api/types";
import { ADVICE, findings, rounded, SECTIONS } from "./sections";

const part = { dismissed: false, healthy: true, severity: "ok", warnings: [] };
const report = (changes: object): HealthcheckReport =>
  ({
    time: "",
    healthy: true,
    severity: "ok",
    coder_version: "",
    ...Object.fromEntries(SECTIONS.map(({ key }) => [key, part])),
    ...changes,
  }) as unknown as HealthcheckReport;

it("finds no problems in a healthy report", () => {
  expect(findings(report({}))).toEqual([]);
});

it("sorts errors first, with remedies", () => {
  const problems = findings(
    report({
      database: { ...part, severity: "warning", warnings: [{ code: "EDB02", message: "26 ms" }] },
      access_url: { ...part, severity: "error", error: "EACS03: no route" },
      websocket: { ...part, severity: "error", error: "of no known kind" },
    }),
  );
  expect(
    problems.map(({ code, message, severity, advice }) => [
      code,
      message,
      severity,
      advice === ADVICE[code],
    ]),
  ).toEqual([
    ["EACS03", "no route", "error", true],
    ["EUNKNOWN", "of no known kind", "error", true],
    ["EDB02", "26 ms", "warning", true],
  ]);
});

it("omits dismissed checks", () => {
  expect(
    findings(
      report({
        database: {
          ...part,
          dismissed: true,
          severity: "warning",
          warnings: [{ code: "EDB02", message: "26 ms" }],
        },
      }),
    ),
  ).toEqual([]);
});

it.each([
  ["0.726ms", "0.73 ms"],
  ["1.25s", "1.3 s"],
  ["812µs", "810 µs"],
  ["1m2s", "1m2s"],
  ["", ""],
])("formats %j as %j", (text, words) => expect(rounded(text)).toBe(words));
