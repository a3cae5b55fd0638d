import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { toast, Toasts } from "./toast";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});
const pass = (ms: number) => act(() => vi.advanceTimersByTime(ms));

it("stays while it has the focus or the pointer, and goes afterwards", () => {
  render(<Toasts />);
  act(() => toast.done("Saved."));
  const dismiss = screen.getByRole("button", { name: "Dismiss" });
  act(() => dismiss.focus());
  pass(60_000);
  expect(screen.getByText("Saved.")).toBeVisible();
  act(() => dismiss.blur());
  fireEvent.mouseEnter(screen.getByText("Saved."));
  pass(60_000);
  expect(screen.getByText("Saved.")).toBeVisible();
  fireEvent.mouseLeave(screen.getByText("Saved."));
  pass(60_000);
  expect(screen.queryByText("Saved.")).toBeNull();
});

it("takes no focus", () => {
  render(
    <>
      <input aria-label="Name" />
      <Toasts />
    </>,
  );
  screen.getByLabelText("Name").focus();
  act(() => toast.failed("Not saved."));
  expect(screen.getByLabelText("Name")).toHaveFocus();
  pass(60_000);
});
