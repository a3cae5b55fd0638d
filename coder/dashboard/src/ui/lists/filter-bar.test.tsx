import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
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
  const onChangeMock = vi.fn();
  const { rerender } = render(bar("", onChangeMock));
  typed("name:a");
  settle();
  expect(onChangeMock).toHaveBeenLastCalledWith("name:a");
  typed("name:ab");
  rerender(bar("name:a", onChangeMock));
  expect(screen.getByRole("searchbox")).toHaveValue("name:ab");
  settle();
  expect(onChangeMock).toHaveBeenLastCalledWith("name:ab");
});

it("shows a search set elsewhere", () => {
  const onChangeMock = vi.fn();
  const { rerender } = render(bar("", onChangeMock));
  typed("name:a");
  settle();
  rerender(bar("name:a", onChangeMock));
  for (const other of ["status:running", "name:a", ""]) {
    rerender(bar(other, onChangeMock));
    expect(screen.getByRole("searchbox")).toHaveValue(other);
  }
});

it("sends at once on Enter and on clear", () => {
  const onChangeMock = vi.fn();
  const { rerender } = render(bar("", onChangeMock));
  typed("name:a");
  fireEvent.keyDown(screen.getByRole("searchbox"), { key: "Enter" });
  expect(onChangeMock).toHaveBeenLastCalledWith("name:a");
  rerender(bar("name:a", onChangeMock));
  fireEvent.click(screen.getByRole("button", { name: "Clear search" }));
  expect(onChangeMock).toHaveBeenLastCalledWith("");
  expect(screen.getByRole("searchbox")).toHaveValue("");
});

it.each([
  ["Filters", "All", ""],
  ["Status", "Running", "name:a status:running"],
])("accepts what %s sets while typing", (menu, item, expected) => {
  const onChangeMock = vi.fn();
  const { rerender } = render(bar("", onChangeMock));
  typed("name:a");
  choose(menu, item);
  expect(onChangeMock.mock.calls).toEqual([[expected]]);
  rerender(bar(expected, onChangeMock));
  settle();
  expect(onChangeMock).toHaveBeenCalledTimes(1);
  expect(screen.getByRole("searchbox")).toHaveValue(expected);
});

it("says that the search of a menu failed", async () => {
  vi.useRealTimers();
  const find = () => ({
    queryKey: ["users"],
    queryFn: () => Promise.reject(new Error("Database is busy.")),
  });
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={client}>
      <MemoryRouter>
        <FilterBar
          label="Search things"
          placeholder=""
          filter=""
          onChange={() => undefined}
          menus={[{ term: "owner", label: "Owner", options: [], find }]}
        />
      </MemoryRouter>
    </QueryClientProvider>,
  );
  fireEvent.click(screen.getByRole("button", { name: "Owner" }));
  expect(await screen.findByRole("alert")).toHaveTextContent(
    "The search failed: Database is busy.",
  );
  expect(screen.queryByText("No results")).toBeNull();
});

it("says that the options of a menu failed to load", () => {
  render(
    <MemoryRouter>
      <FilterBar
        label="Search things"
        placeholder=""
        filter=""
        onChange={() => undefined}
        menus={[{ ...STATUS, failure: "Failed to load." }]}
      />
    </MemoryRouter>,
  );
  fireEvent.keyDown(screen.getByRole("button", { name: "Status" }), { key: "Enter" });
  expect(screen.getByText("Failed to load.")).toBeVisible();
});
