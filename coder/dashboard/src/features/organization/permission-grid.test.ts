import { describe, expect, it } from "vitest";

import type { Permission } from "../../api/types";
import { beyondGrid, byActions, grantedActions, GRID, isGiven, summary } from "./permission-grid";

const may = (resource_type: string, action: string, negate = false) =>
  ({ resource_type, action, negate }) as Permission;

describe("the grid", () => {
  it("toggles each cell", () => {
    for (const { kind, actions } of GRID) {
      for (const action of actions) {
        const once = grantedActions([], kind, action, true);
        expect(isGiven(once, kind, action)).toBe(true);
        expect(grantedActions(once, kind, action, true)).toEqual(once);
        expect(grantedActions(once, kind, action, false)).toEqual([]);
      }
    }
  });
  it("removes one from everything", () => {
    const rest = grantedActions([may("template", "*")], "template", "delete", false);
    expect(isGiven(rest, "template", "read")).toBe(true);
    expect(isGiven(rest, "template", "delete")).toBe(false);
  });
  it("keeps permissions outside the grid and negated ones", () => {
    const others = [may("workspace", "create", true), may("chat", "read")];
    expect(beyondGrid(others)).toEqual(others);
    expect(grantedActions(others, "workspace", "create", true)).toEqual([
      ...others,
      may("workspace", "create"),
    ]);
    expect(isGiven(others, "workspace", "create")).toBe(false);
  });
  it("describes itself in words", () => {
    expect(
      summary([
        may("template", "read"),
        may("template", "use"),
        may("workspace", "ssh", true),
        may("*", "*"),
      ]),
    ).toEqual([
      { kind: "template", text: "Templates", actions: "read, use", negate: false },
      { kind: "workspace", text: "Workspaces", actions: "SSH", negate: true },
      { kind: "*", text: "Everything", actions: "everything", negate: false },
    ]);
  });
  it("groups resources with equal permissions", () => {
    expect(
      byActions(
        summary([
          may("api_key", "*"),
          may("chat", "*"),
          may("chat", "*", true),
          may("license", "read"),
        ]),
      ),
    ).toEqual([
      { actions: "everything", negate: false, texts: ["api key", "chat"] },
      { actions: "everything", negate: true, texts: ["chat"] },
      { actions: "read", negate: false, texts: ["license"] },
    ]);
  });
});
