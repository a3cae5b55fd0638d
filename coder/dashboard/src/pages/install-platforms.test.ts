import { expect, it } from "vitest";

import { PLATFORMS, systemOf } from "./install-platforms";

it.each([["Mozilla/5.0 (Windows NT 10.0; Win64; x64)", "windows"], ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)", "darwin"], ["Mozilla/5.0 (X11; Linux x86_64)", "linux"], ["", "linux"]])("%s is %s", (agent, system) => {
  expect(systemOf(agent)).toBe(system);
});

it("offers each program under the name the server serves it by", () => {
  for (const { system, file } of PLATFORMS) expect(file).toMatch(new RegExp(`^coder-${system}-[a-z0-9]+${system === "windows" ? "\\.exe" : ""}$`));
});
