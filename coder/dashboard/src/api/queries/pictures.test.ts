import { describe, expect, it } from "vitest";

import { matching, nameOf, type Picture } from "./pictures";

const ALL: Picture[] = [
  { path: "/icon/azure-devops.svg", words: "git" },
  { path: "/icon/git.svg", words: "" },
  { path: "/emojis/1f4e6.png", words: "package" },
];
const paths = (text: string) => matching(ALL, text).map((picture) => picture.path);

describe("searching icons", () => {
  it.each([
    ["", ["/icon/azure-devops.svg", "/icon/git.svg", "/emojis/1f4e6.png"]],
    ["git", ["/icon/git.svg", "/icon/azure-devops.svg"]],
    ["GIT azure", ["/icon/azure-devops.svg"]],
    ["pack", ["/emojis/1f4e6.png"]],
    ["1f4e6", ["/emojis/1f4e6.png"]],
    ["nothing", []],
  ])("%j", (text, expected) => expect(paths(text)).toEqual(expected));

  it("returns their names", () =>
    expect(ALL.map(nameOf)).toEqual(["azure-devops", "git", "package"]));
});
