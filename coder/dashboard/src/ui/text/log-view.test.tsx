import { fireEvent, render, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { LogView } from "./LogView";

/** jsdom has no layout: the log's position, and the measured height of its lines. */
function moves(log: HTMLElement, scrollTop: number, scrollHeight: number): void {
  for (const [name, value] of Object.entries({ scrollTop, scrollHeight, clientHeight: 500 }))
    Object.defineProperty(log, name, { value, configurable: true, writable: true });
  fireEvent.scroll(log);
}

it("follows the newest line until the reader scrolls up", () => {
  render(
    <LogView
      label="Lines"
      lines={Array.from({ length: 90 }, (_, index) => ({ id: index, text: `line ${index}` }))}
    />,
  );
  const log = screen.getByRole("log", { name: "Lines" });
  const hasLeftEnd = () => screen.queryByRole("button", { name: "Newest" }) !== null;
  moves(log, 1300, 1800);
  expect(hasLeftEnd()).toBe(false);
  moves(log, 1300, 3100);
  expect(hasLeftEnd()).toBe(false);
  moves(log, 1900, 3100);
  expect(hasLeftEnd()).toBe(false);
  moves(log, 1800, 3100);
  expect(hasLeftEnd()).toBe(true);
  moves(log, 2000, 3100);
  expect(hasLeftEnd()).toBe(true);
  moves(log, 2600, 3100);
  expect(hasLeftEnd()).toBe(false);
});
