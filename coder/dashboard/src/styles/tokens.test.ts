// Text on coloured buttons has enough contrast in every theme, also on hover.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const sheet = readFileSync("src/styles/tokens.css", "utf8");
const blocks = [...sheet.matchAll(/^([^\n{]*\[data-theme[^{]*)\{([^}]*)\}/gm)].map(
  ([, selector = "", body = ""]) => ({
    selector,
    tokens: Object.fromEntries(
      [...body.matchAll(/(--[\w-]+): (#[0-9a-f]{6})/g)].map(([, name = "", colour = ""]) => [
        name,
        colour,
      ]),
    ),
  }),
);
const themes = ["light", "dark"].flatMap((base) =>
  ["", "-contrast", "-protan-deuter", "-tritan"].map((kind) => base + kind),
);
const PAIRS = [
  ["--on-accent", "--accent"],
  ["--on-accent", "--accent-hover"],
  ["--on-bad", "--solid-bad"],
] as const;
const READABLE = 4.5;

function tokensOf(theme: string): Record<string, string> {
  const own = blocks.filter(
    ({ selector }) =>
      selector.includes(`[data-theme^="${theme.split("-")[0]}"]`) ||
      selector.includes(`[data-theme="${theme}"]`),
  );
  return Object.assign({}, ...own.map((block) => block.tokens)) as Record<string, string>;
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test("the gutter behind a dialog has the colour of its overlay", () => {
  const overlays = [...sheet.matchAll(/--overlay: rgb\(([\d ]+) \/ (\d+%)\);/g)];
  expect(overlays).toHaveLength(2);
  for (const [, colour, part] of overlays)
    expect(sheet).toContain(
      `--gutter-dimmed: color-mix(in srgb, rgb(${colour}) ${part}, var(--bg));`,
    );
});

test.each(themes)("%s", (theme) => {
  const tokens = tokensOf(theme);
  for (const [text, ground] of PAIRS) {
    const [darker = 0, lighter = 0] = [tokens[text] ?? "", tokens[ground] ?? ""]
      .map(luminance)
      .sort((first, other) => first - other);
    expect((lighter + 0.05) / (darker + 0.05), `${text} on ${ground}`).toBeGreaterThanOrEqual(
      READABLE,
    );
  }
});
