import { expect, it, vi } from "vitest";

import { copiedText } from "./clipboard-sequence";
import { guardPaste, pastedLines } from "./paste";
import { isAnswer } from "./replay";

const base64 = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

it.each([
  [`c;${base64("hello")}`, "hello"],
  [`;${base64("über 中文")}`, "über 中文"],
  ["c;?", null],
  ["c;", null],
  ["c;!!!", null],
  ["c;/w==", null], // not UTF-8
  [`c;${"A".repeat((1 << 20) + 4)}`, null],
])("reads the OSC 52 sequence %.20s", (sequence, text) => {
  expect(copiedText(sequence)).toBe(text);
});

it.each([
  ["\x1b[1;2R", true],
  ["\x1b[?1;2c", true],
  ["\x1b[>0;276;0c", true],
  ["\x1b[0n", true],
  ["\x1b[?2026;2$y", true],
  ["\x1b]11;rgb:ffff/ffff/ffff\x1b\\", true],
  ["\x1bP1$r0m\x1b\\", true],
  ["ls\r", false],
  ["\x1b", false],
  ["\x1b[A", false],
  ["\x1bOP", false],
  ["\x1b[15~", false],
  ["\x1b[200~pasted\x1b[201~", false],
  ["\x1b[M !!", false],
])("tells the answer of a terminal from typed text: %j", (data, answer) => {
  expect(isAnswer(data)).toBe(answer);
});

it.each([
  ["ls", 1],
  ["ls\n", 1],
  ["a\nb", 2],
  ["a\r\nb\r\n", 2],
  ["\n\n", 2],
  ["", 0],
])("counts the lines of %j", (text, lines) => {
  expect(pastedLines(text)).toBe(lines);
});

function paste(text: string, bracketedPasteMode: boolean) {
  const element = document.createElement("div");
  const ask = vi.fn();
  guardPaste(element, { modes: { bracketedPasteMode } } as Parameters<typeof guardPaste>[1], ask);
  const event = new Event("paste", { cancelable: true });
  Object.assign(event, { clipboardData: { getData: () => text } });
  element.dispatchEvent(event);
  return { ask, prevented: event.defaultPrevented };
}

it("asks before several lines reach a program without bracketed paste", () => {
  const { ask, prevented } = paste("a\nb", false);
  expect(ask).toHaveBeenCalledWith("a\nb");
  expect(prevented).toBe(true);
});

it.each([
  ["ls\n", false],
  ["a\nb", true],
])("pastes %j directly with bracketed paste %s", (text, bracketed) => {
  const { ask, prevented } = paste(text, bracketed);
  expect(ask).not.toHaveBeenCalled();
  expect(prevented).toBe(false);
});
