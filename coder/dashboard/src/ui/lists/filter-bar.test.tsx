import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { MemoryRouter } from "react-router";

import { FilterBar } from "./FilterBar";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const STATUS = {
  term: "status",
  label: "Status",
  options: [{ value: "running", text: "Running" }],
};
const bar = (filter: string, onChange: (next: string) => void) => (
  <MemoryRouter>
    <FilterBar
      label="Search things"
      placeholder=""
      filter={filter}
      onChange={onChange}
      presets={[["All", ""]]}
      menus={[STATUS]}
    />
  </MemoryRouter>
);
const choose = (menu: string, item: string) => {
  fireEvent.keyDown(screen.getByRole("button", { name: menu }), { key: "Enter" });
  fireEvent.click(screen.getByRole("menuitem", { name: new RegExp(item) }));
};
const typed = (text: string) =>
  fireEvent.change(screen.getByRole("searchbox"), { target: { value: text } });
const settle = () =>
  act(() => {
    vi.advanceTimersByTime(1000);
  });

it("keeps input while the address catches up", () => {
  const told = vi.fn();
  const { rerender } = render(bar("", told));
  typed("name:a");
  settle();
  expect(told).toHaveBeenLastCalledWith("name:a");
  typed("name:ab");
  rerender(bar("name:a", told));
  expect(screen.getByRole("searchbox")).toHaveValue("name:ab");
  settle();
  expect(told).toHaveBeenLastCalledWith("name:ab");
});

it("shows a search set elsewhere", () => {
  const told = vi.fn();
  const { rerender } = render(bar("", told));
  typed("name:a");
  settle();
  rerender(bar("name:a", told));
  for (const other of ["status:running", "name:a", ""]) {
    rerender(bar(other, told));
    expect(screen.getByRole("searchbox")).toHaveValue(other);
  }
});

it("sends at once on Enter and on clear", () => {
  const told = vi.fn();
  const { rerender } = render(bar("", told));
  typed("name:a");
  fireEvent.keyDown(screen.getByRole("searchbox"), { key: "Enter" });
  expect(told).toHaveBeenLastCalledWith("name:a");
  rerender(bar("name:a", told));
  fireEvent.click(screen.getByRole("button", { name: "Clear search" }));
  expect(told).toHaveBeenLastCalledWith("");
  expect(screen.getByRole("searchbox")).toHaveValue("");
});

it.each([
  ["Filters", "All", ""],
  ["Status", "Running", "name:a status:running"],
])("accepts what %s sets while typing", (menu, item, expected) => {
  const told = vi.fn();
  const { rerender } = render(bar("", told));
  typed("name:a");
  choose(menu, item);
  expect(told.mock.calls).toEqual([[expected]]);
  rerender(bar(expected, told));
  settle();
  expect(told).toHaveBeenCalledTimes(1);
  expect(screen.getByRole("searchbox")).toHaveValue(expected);
});
