// Rules for all pages on a phone, checked in the sources: no content is left out for lack of width.
import { describe, expect, it } from "vitest";

const sources = import.meta.glob<string>(
  ["../../{pages,features}/**/*.tsx", "!../../pages/dev/**", "!../../**/*.test.tsx"],
  { query: "?raw", import: "default", eager: true },
);
const lines = Object.entries(sources).flatMap(([file, text]) =>
  text.split("\n").map((line) => ({ file: file.replace("../../", ""), line: line.trim() })),
);
/** Columns in a second line, each with the last header before `extra: true`. */
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

/** Content for wide screens only, and the reason why nothing is lost. */
const DECORATION: Readonly<Record<string, string>> = {
  "pages/workspaces/RowActions.tsx": "the row's menu has the same actions",
  "pages/workspaces/workspace-columns.tsx":
    "the template's picture; its name is in the second line",
  "pages/groups/GroupsPage.tsx":
    "avatars next to the number of members; the group's page names them",
  "features/navigation/SidePage.tsx": "side links, which become a select on a phone",
};

describe("a phone", () => {
  it("hides only duplicated content", () => {
    const hiding = new Set(
      lines
        .filter(({ line }) =>
          /max-(?:sm|md|lg):(?:hidden|sr-only)|\bhidden (?:sm|md|lg):/.test(line),
        )
        .map(({ file }) => file),
    );
    expect([...hiding].sort()).toEqual(Object.keys(DECORATION).sort());
  });

  it.each(extras)("%s labels its second line: %s", (_, named) => {
    expect(named).toMatch(/^header:\s*"[^"]+"/);
  });

  it("has its tables from one component", () => {
    const own = lines.filter(({ line }) => /<table\b/.test(line)).map(({ file }) => file);
    // The server's options, whose values move below their names; the three columns of a diff, which
    // scroll; the two columns of a mapping, whose texts wrap.
    expect(own.sort()).toEqual([
      "features/organization/MappingEditor.tsx",
      "pages/deployment/OptionsPage.tsx",
      "pages/logs/AuditEntry.tsx",
    ]);
  });
});
