import { describe, expect, it } from "vitest";

import type { Preset } from "../../../api/types";
import { initialValues } from "./initial-values";

const preset = (Name: string, values: Record<string, string>, Default = false): Preset => ({
  ID: Name.toLowerCase(),
  Name,
  Default,
  Description: "",
  Icon: "",
  DesiredPrebuildInstances: null,
  Parameters: Object.entries(values).map(([key, Value]) => ({ Name: key, Value })),
});
const LARGE = preset("Large", { region: "us", cpu: "8" }, true);
const SMALL = preset("Small", { region: "eu", cpu: "1" });

describe("initial values of a workspace", () => {
  it.each([
    ["the default preset", [LARGE, SMALL], "", {}, "large", { region: "us", cpu: "8" }, undefined],
    [
      "the one a link names",
      [LARGE, SMALL],
      "Small",
      {},
      "small",
      { region: "eu", cpu: "1" },
      undefined,
    ],
    ["no preset where none is the default", [SMALL], "", {}, undefined, {}, undefined],
    [
      "the default preset beside values it does not speak of, or says, too",
      [LARGE],
      "",
      { name: "x", region: "us" },
      "large",
      { region: "us", cpu: "8" },
      undefined,
    ],
    [
      "the values of a link rather than the default preset",
      [LARGE],
      "",
      { region: "eu" },
      undefined,
      {},
      ["region"],
    ],
    [
      "the rest of a preset the link names, its values kept",
      [LARGE, SMALL],
      "Small",
      { cpu: "4" },
      undefined,
      { region: "eu", cpu: "4" },
      ["cpu"],
    ],
    [
      "the default preset where the link names one there is not",
      [LARGE],
      "Huge",
      {},
      "large",
      { region: "us", cpu: "8" },
      undefined,
    ],
  ] as const)("%s", (_, presets, named, own, chosen, values, skipped) => {
    const result = initialValues(presets, named, own);
    expect(result.preset?.ID).toBe(chosen);
    expect(result.values).toEqual(values);
    expect(result.skipped?.changes).toEqual(skipped);
  });
});
