import { describe, expect, it } from "vitest";

import { readableOn } from "./Announcements";
import { themeFor } from "./theme";

const settings = (
  theme_mode: string,
  theme_preference = "",
  theme_light = "light",
  theme_dark = "dark",
) => ({ theme_mode, theme_preference, theme_light, theme_dark, terminal_font: "" });

describe("theme selection", () => {
  it.each([
    [undefined, true, false, "dark"],
    [undefined, false, true, "light-contrast"],
    [settings("single", "dark-tritan"), false, false, "dark-tritan"],
    [settings("sync", "", "light-protan-deuter", "dark"), false, false, "light-protan-deuter"],
    [settings("sync"), true, true, "dark-contrast"],
    [settings("", "auto"), true, false, "dark"],
    [settings("", "no-such-theme"), false, false, "light"],
  ] as const)("%j, dark %s, contrast %s: %s", (chosen, dark, contrast, theme) => {
    expect(themeFor(chosen, dark, contrast)).toBe(theme);
  });
});

describe("banner text colour", () => {
  it.each([
    ["#ffffff", "#000000"],
    ["#004852", "#ffffff"],
    ["#ffd54f", "#000000"],
    ["#b71c1c", "#ffffff"],
  ])("on %s is %s", (colour, letters) => {
    expect(readableOn(colour)).toBe(letters);
  });
});
