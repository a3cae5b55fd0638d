import { expect, it } from "vitest";

import { themeOf } from "./colours";

it("maps bright colours to the theme's", () => {
  const box = document.createElement("div");
  for (const [index, hue] of [
    "black",
    "red",
    "green",
    "yellow",
    "blue",
    "magenta",
    "cyan",
    "white",
  ].entries())
    box.style.setProperty(`--ansi-${hue}`, `#00000${index}`);
  document.body.append(box);
  const theme = themeOf(box);
  expect(theme).toMatchObject({
    black: "#000000",
    brightBlack: "#000000",
    green: "#000002",
    brightGreen: "#000002",
    brightCyan: "#000006",
    brightWhite: "#000007",
  });
  expect(Object.keys(theme).filter((name) => name.startsWith("bright"))).toHaveLength(8);
});
