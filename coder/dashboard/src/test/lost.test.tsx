import { act, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { Ago } from "../ui/Ago";
import { ago } from "../lib/time";
import { setLost } from "../api/connection";

const CONNECTION = Symbol("test");

beforeEach(() => void vi.useFakeTimers({ now: Date.parse("2026-01-01T00:00:10Z") }));
afterEach(() => {
  act(() => setLost(CONNECTION, false));
  vi.useRealTimers();
});

it("counts seconds instead of saying now while the connection is lost", () => {
  render(<Ago at="2026-01-01T00:00:00Z" />);
  expect(screen.getByText("just now")).toBeVisible();
  act(() => setLost(CONNECTION, true));
  act(() => void vi.advanceTimersByTime(3000));
  expect(screen.getByText("13 seconds ago")).toBeVisible();
  act(() => void vi.advanceTimersByTime(2000));
  expect(screen.getByText("15 seconds ago")).toBeVisible();
  act(() => setLost(CONNECTION, false));
  expect(screen.getByText("just now")).toBeVisible();
});

it("words the future the same with and without a connection", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  expect(ago("2026-01-01T02:00:00Z", now, true)).toBe("in 2 hours");
  expect(ago("2026-01-01T00:00:05Z", now, true)).toBe("just now");
});
