import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { KEYS, TerminalKeys, type TerminalKey } from "./TerminalKeys";

const bytesOf = (name: string, applicationCursor: boolean) =>
  KEYS.find((key) => key.name === name)?.data(applicationCursor);

it.each([
  ["Escape", false, "\x1b"],
  ["Control C", false, "\x03"],
  ["Up", false, "\x1b[A"],
  ["Up", true, "\x1bOA"],
] as const)("sends %s (application cursor: %j) as %j", (name, applicationCursor, bytes) => {
  expect(bytesOf(name, applicationCursor)).toBe(bytes);
});

it("offers each key as a named button that keeps the focus elsewhere", async () => {
  const pressed: TerminalKey[] = [];
  render(
    <>
      <input aria-label="Terminal input" />
      <TerminalKeys onKey={(key) => pressed.push(key)} />
    </>,
  );
  screen.getByLabelText("Terminal input").focus();
  for (const { name } of KEYS) await userEvent.click(screen.getByRole("button", { name }));
  expect(pressed).toEqual([...KEYS]);
});
