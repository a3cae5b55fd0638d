import { expect, it } from "vitest";

import { fileOf, keyOf, nameOf, PLATFORMS, systemOf } from "./platforms";

it.each([
  ["Mozilla/5.0 (Windows NT 10.0; Win64; x64)", "windows"],
  ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)", "darwin"],
  ["Mozilla/5.0 (X11; Linux x86_64)", "linux"],
  ["", "linux"],
])("names %s as %s", (agent, system) => {
  expect(systemOf(agent)).toBe(system);
});

it("matches the server's file names, with unique platform names", () => {
  for (const platform of PLATFORMS)
    expect(fileOf(platform)).toBe(
      `coder-${keyOf(platform).replace("/", "-")}${platform.system === "windows" ? ".exe" : ""}`,
    );
  expect(new Set(PLATFORMS.map(nameOf)).size).toBe(PLATFORMS.length);
});
