import { describe, expect, it } from "vitest";

import { ansiSpans, plainText } from "./ansi";

describe("terminal lines", () => {
  it("keep colours and weights as class names", () => {
    expect(ansiSpans("a\u001b[1;31mb\u001b[0mc")).toEqual([
      { text: "a", className: "" },
      { text: "b", className: "ansi-red font-semibold" },
      { text: "c", className: "" },
    ]);
  });

  it.each([
    ["bright colours", "\u001b[92mok", "ansi-green"],
    ["256 colours keep the text's own", "\u001b[38;5;196mok", ""],
    ["true colours too", "\u001b[38;2;1;2;3mok", ""],
    ["a code after them still counts", "\u001b[38;5;196;4mok", "underline"],
  ])("%s", (_, line, className) => {
    expect(ansiSpans(line)).toEqual([{ text: "ok", className }]);
  });

  it.each([
    ["cursor movement", "a\u001b[2Kb\u001b[10;20Hc", "abc"],
    ["titles and links", "\u001b]0;title\u0007a\u001b]8;;javascript:alert(1)\u001b\\b", "ab"],
    ["an unfinished title swallows no more than itself", "a\u001b]8;;x", "a"],
    ["what a carriage return overwrites", "10%\r50%\r100%\r\n", "100%"],
    ["bells and backspaces", "a\u0007b\u0008c", "abc"],
    ["tabs stay", "a\tb", "a\tb"],
    ["markup is text", "<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"],
  ])("drop %s", (_, line, text) => {
    expect(plainText(line)).toBe(text);
  });
});
