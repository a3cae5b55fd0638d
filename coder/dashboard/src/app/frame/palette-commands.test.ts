import { expect, it } from "vitest";

import { rank } from "./CommandPalette";
import { commandOf, labelOf } from "./palette-commands";

it.each([
  ["stop api-dev", { verb: "stop", name: "api-dev", hours: 1 }],
  ["Terminal api", { verb: "terminal", name: "api", hours: 1 }],
  ["extend 2h", { verb: "extend", name: "", hours: 2 }],
  ["extend api-dev 4h", { verb: "extend", name: "api-dev", hours: 4 }],
  ["extend 99h", { verb: "extend", name: "", hours: 24 }],
  ["copy ssh api-dev", { verb: "copy", name: "api-dev", hours: 1 }],
  ["stop", { verb: "stop", name: "", hours: 1 }],
  ["stopwatch", null],
  ["api-dev stop", null],
  ["", null],
] as const)("reads %j", (text, command) => {
  expect(commandOf(text)).toEqual(command);
});

it.each(["stop api", "restart api", "terminal api", "extend 2h api", "copy ssh api", "extend 2h"])(
  "finds its own label by %j",
  (text) => {
    const command = commandOf(text);
    expect(command).not.toBeNull();
    expect(rank(command ? labelOf(command, "ana/api-dev") : "", text)).toBe(1);
  },
);
