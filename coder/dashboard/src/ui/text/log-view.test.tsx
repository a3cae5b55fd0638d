import { fireEvent, render, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { LogView } from "./LogView";

/** jsdom lays nothing out: where the log stands, and how tall what is in it turned out to be. */
function moves(log: HTMLElement, scrollTop: number, scrollHeight: number): void {
  for (const [name, value] of Object.entries({ scrollTop, scrollHeight, clientHeight: 500 }))
    Object.defineProperty(log, name, { value, configurable: true, writable: true });
  fireEvent.scroll(log);
}

it("stays at the newest line while lines turn out taller than thought, until somebody goes up", () => {
  render(
    <LogView
      label="Lines"
      lines={Array.from({ length: 90 }, (_, index) => ({ id: index, text: `line ${index}` }))}
    />,
  );
  const log = screen.getByRole("log", { name: "Lines" });
  const left = () => screen.queryByRole("button", { name: "Newest" }) !== null;
  moves(log, 1300, 1800);
  expect(left()).toBe(false);
  moves(log, 1300, 3100);
  expect(left()).toBe(false);
  moves(log, 1900, 3100);
  expect(left()).toBe(false);
  moves(log, 1800, 3100);
  expect(left()).toBe(true);
  moves(log, 2000, 3100);
  expect(left()).toBe(true);
  moves(log, 2600, 3100);
  expect(left()).toBe(false);
});
