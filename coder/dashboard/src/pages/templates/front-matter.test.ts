import { expect, it } from "vitest";

import { frontMatter, withoutFrontMatter } from "./front-matter";

const NONE = { display_name: "", description: "", icon: "" };

it.each([
  [
    "plain",
    "---\ndisplay_name: Docker Box\ndescription: Runs on Docker # a note\nicon: " +
      "../../../site/static/icon/docker.png\ntags: [a]\n---\n# Docker\n",
    { display_name: "Docker Box", description: "Runs on Docker", icon: "/icon/docker.png" },
    "# Docker\n",
  ],
  [
    "quoted",
    "---\ndisplay_name: \"A \\\"box\\\"\"\ndescription: 'It''s: here'\nicon: /icon/k8s.png\n---\n",
    { display_name: 'A "box"', description: "It's: here", icon: "/icon/k8s.png" },
    "",
  ],
  [
    "of another system",
    "\uFEFF---\r\ndisplay_name: Box\r\n---\r\nText",
    { ...NONE, display_name: "Box" },
    "Text",
  ],
  [
    "over lines",
    "---\ndescription: |\n  two\n  lines\ndisplay_name: [a, b]\n---\nText",
    NONE,
    "Text",
  ],
  ["empty", "---\n---\nText", NONE, "Text"],
  ["none", "# Title\n---\ndisplay_name: no\n---\n", NONE, "# Title\n---\ndisplay_name: no\n---\n"],
  ["never closed", "---\ndisplay_name: no\n", NONE, "---\ndisplay_name: no\n"],
])("%s", (_, readme, matter, rest) => {
  expect([frontMatter(readme), withoutFrontMatter(readme)]).toEqual([matter, rest]);
});

it("is never longer than the template's fields", () => {
  const fields = frontMatter(
    `---\ndisplay_name: ${"x".repeat(200)}\ndescription: ${"🙂".repeat(200)}\n---\n`,
  );
  expect([[...fields.display_name].length, [...fields.description].length]).toEqual([64, 128]);
});
