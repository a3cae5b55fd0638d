import { expect, it } from "vitest";

import { problemOf } from "./dynamic-parameters";

it.each([
  [
    "Invalid parameter value according to 'validation' block",
    "Between 1 and 8, not 12.",
    "",
    { title: "Between 1 and 8, not 12.", detail: "" },
  ],
  [
    "Required parameter not provided",
    "parameter value is null",
    "required",
    { title: "A value is required.", detail: "" },
  ],
  [
    "Value must be a valid option",
    "It is none of these.",
    "",
    { title: "Value must be a valid option", detail: "It is none of these." },
  ],
  ["The same", "The same", "", { title: "The same", detail: "" }],
])("%s: %s", (summary, detail, code, message) =>
  expect(problemOf({ severity: "error", summary, detail, extra: { code } })).toEqual(message),
);
