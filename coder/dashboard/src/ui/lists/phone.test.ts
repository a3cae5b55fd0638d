// What every page is held to on a phone, read from the pages themselves: nothing they say is left out for want of width.
import { describe, expect, it } from "vitest";

const sources = import.meta.glob<string>(["../../pages/**/*.tsx", "!../../pages/dev/**", "!../../pages/**/*.test.tsx"], { query: "?raw", import: "default", eager: true });
const lines = Object.entries(sources).flatMap(([file, text]) => text.split("\n").map((line) => ({ file: file.replace("../../pages/", ""), line: line.trim() })));

/** Drawn on wide screens alone, and why nothing is lost by it. */
const DECORATION: Readonly<Record<string, string>> = {
  "workspaces/RowActions.tsx": "the same ways are in the row's menu",
  "workspaces/WorkspacesPage.tsx": "the template's picture; its name is in the second line",
  "groups/GroupsPage.tsx": "faces beside the number of members; the group's page names them",
};

describe("a phone", () => {
  it("hides only what is said elsewhere", () => {
    const hiding = new Set(lines.filter(({ line }) => /max-(?:sm|md|lg):(?:hidden|sr-only)|\bhidden (?:sm|md|lg):/.test(line)).map(({ file }) => file));
    expect([...hiding].sort()).toEqual(Object.keys(DECORATION).sort());
  });

  it.each(lines.filter(({ line }) => line.includes("extra: true")).map(({ file, line }) => [file, line.slice(0, 60), line] as const))("%s names what stands in a second line: %s", (file, _, line) => {
    const before = lines.filter((one) => one.file === file).map((one) => one.line);
    const named = line.includes("header: ") ? line : before.slice(0, before.indexOf(line)).findLast((one) => one.includes("header: "));
    expect(named).toMatch(/header: "[^"]+"/);
  });

  it("has its tables from one component", () => {
    const own = lines.filter(({ line }) => /<table\b/.test(line)).map(({ file }) => file);
    // The server's options, whose values stand below their names there; a change's three columns, scrolled where they are wide.
    expect(own.sort()).toEqual(["deployment/OptionsPage.tsx", "logs/AuditPage.tsx"]);
  });
});
