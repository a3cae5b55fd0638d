// What every page is held to on a phone, read from the pages and what they share: nothing they say is left out for want of width.
import { describe, expect, it } from "vitest";

const sources = import.meta.glob<string>(
  ["../../{pages,features}/**/*.tsx", "!../../pages/dev/**", "!../../**/*.test.tsx"],
  { query: "?raw", import: "default", eager: true },
);
const lines = Object.entries(sources).flatMap(([file, text]) =>
  text.split("\n").map((line) => ({ file: file.replace("../../", ""), line: line.trim() })),
);
/** Columns that stand in a second line, each with the last header written before `extra: true`. */
const extras = Object.entries(sources).flatMap(([file, text]) =>
  [...text.matchAll(/\bextra: true\b/g)].map(
    ({ index }) =>
      [
        file.replace("../../", ""),
        text
          .slice(0, index)
          .match(/\bheader:\s*\S[^\n]*/g)
          ?.at(-1),
      ] as const,
  ),
);

/** Drawn on wide screens alone, and why nothing is lost by it. */
const DECORATION: Readonly<Record<string, string>> = {
  "pages/workspaces/RowActions.tsx": "the same ways are in the row's menu",
  "pages/workspaces/WorkspacesPage.tsx": "the template's picture; its name is in the second line",
  "pages/groups/GroupsPage.tsx": "faces beside the number of members; the group's page names them",
  "features/navigation/SidePage.tsx": "links beside the page, which are one select on a phone",
};

describe("a phone", () => {
  it("hides only what is said elsewhere", () => {
    const hiding = new Set(
      lines
        .filter(({ line }) =>
          /max-(?:sm|md|lg):(?:hidden|sr-only)|\bhidden (?:sm|md|lg):/.test(line),
        )
        .map(({ file }) => file),
    );
    expect([...hiding].sort()).toEqual(Object.keys(DECORATION).sort());
  });

  it.each(extras)("%s names what stands in a second line: %s", (_, named) => {
    expect(named).toMatch(/^header:\s*"[^"]+"/);
  });

  it("has its tables from one component", () => {
    const own = lines.filter(({ line }) => /<table\b/.test(line)).map(({ file }) => file);
    // The server's options, whose values stand below their names there; a change's three columns, scrolled where they are wide.
    expect(own.sort()).toEqual(["pages/deployment/OptionsPage.tsx", "pages/logs/AuditEntry.tsx"]);
  });
});
