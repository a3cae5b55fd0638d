import { describe, expect, it } from "vitest";

import { isPage, safeTarget } from "./target";

describe("redirect target after sign-in", () => {
  it.each([
    "/a?b=c#d",
    "/@u/w/apps/x/?q=%20",
    "/api/v2/applications/auth-redirect?redirect_uri=http%3A%2F%2Fx",
  ])("keeps %s", (target) => {
    expect(safeTarget(target)).toBe(target);
  });

  it.each([
    "//evil.test",
    "/\t/evil.test",
    "/\\evil.test",
    "/\n\\evil.test",
    "/..//evil.test",
    "https://evil.test",
    null,
  ])("does not redirect %j to another site", (target) => {
    expect(safeTarget(target)).toBe("/workspaces");
  });

  it.each([
    ["/workspaces", true],
    ["/@ana/dev", true],
    ["/@ana/dev.main/apps/code/", false],
    ["/api/v2/x", false],
    ["/oauth2/authorize?x", false],
  ] as const)("knows whether %s is a dashboard page", (target, ours) => {
    expect(isPage(target)).toBe(ours);
  });
});
