import { act, render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { afterEach, expect, it, vi } from "vitest";

import { DataTable, type Selected } from "./DataTable";

function People({ seen }: { seen: number }) {
  return (
    <DataTable
      label="People"
      data={[{ name: "ana" }]}
      rowKey={(row) => row.name}
      columns={[
        { id: "name", header: "Name", cell: (row) => <button type="button">{row.name}</button> },
        { id: "seen", header: "Seen", cell: () => seen },
      ]}
    />
  );
}

it("keeps the focus in a refreshed row", () => {
  const { rerender } = render(<People seen={1} />);
  const button = screen.getByRole("button", { name: "ana" });
  button.focus();
  rerender(<People seen={2} />);
  expect(screen.getByText("2")).toBeVisible();
  expect(screen.getByRole("button", { name: "ana" })).toBe(button);
  expect(button).toHaveFocus();
});

/** A screen whose width changes; returns the function that changes it. */
function screenOf(narrow: boolean): (narrow: boolean) => void {
  const listeners = new Set<() => void>();
  const query = {
    matches: narrow,
    addEventListener: (_: string, listener: () => void) => listeners.add(listener),
    removeEventListener: (_: string, listener: () => void) => listeners.delete(listener),
  };
  vi.stubGlobal("matchMedia", () => query);
  return (next) => {
    query.matches = next;
    for (const listener of listeners) listener();
  };
}

afterEach(() => vi.unstubAllGlobals());

const machines = (
  <DataTable
    label="Machines"
    data={[{ name: "gpu-box", version: "2.1", seen: "today" }]}
    rowKey={(row) => row.name}
    rowTestId={(row) => row.name}
    selection={{ selected: {}, onChange: () => undefined, name: (row) => row.name }}
    columns={[
      { id: "name", header: "Name", cell: (row) => row.name },
      { id: "version", header: "Version", extra: true, cell: (row) => row.version },
      { id: "seen", header: "Last seen", extra: true, cell: (row) => row.seen },
    ]}
  />
);

it("moves extra columns to a labelled second line", () => {
  const resize = screenOf(true);
  render(machines);
  expect(screen.queryByRole("columnheader", { name: "Version" })).toBeNull();
  const [, row, second] = screen.getAllByRole("row");
  expect(row).toHaveAttribute("data-testid", "gpu-box");
  expect(
    within(second as HTMLElement)
      .getAllByRole("term")
      .map((cell) => cell.textContent),
  ).toEqual(["Version", "Last seen"]);
  expect(
    within(second as HTMLElement)
      .getAllByRole("definition")
      .map((cell) => cell.textContent),
  ).toEqual(["2.1", "today"]);
  expect(within(second as HTMLElement).getByRole("cell")).toHaveAttribute("colspan", "2");
  act(() => resize(false));
  expect(screen.getByRole("columnheader", { name: "Version" })).toBeVisible();
  expect(screen.getAllByRole("row")).toHaveLength(2);
  expect(screen.getAllByText("2.1")).toHaveLength(1);
});

function Chosen({ onSelected }: { onSelected: (selected: Selected) => void }) {
  const [selected, setSelected] = useState<Selected>({ elsewhere: true });
  return (
    <DataTable
      label="Letters"
      data={["a", "b"]}
      rowKey={(row) => row}
      columns={[{ id: "name", header: "Name", cell: (row) => row }]}
      selection={{
        selected,
        onChange: (next) => {
          setSelected(next);
          onSelected(next);
        },
        name: (row) => row,
      }}
    />
  );
}

it("selects one, all, none, and keeps hidden rows", async () => {
  const onSelected = vi.fn();
  render(<Chosen onSelected={onSelected} />);
  const all = screen.getByRole("checkbox", { name: "Select all" });
  await userEvent.click(screen.getByRole("checkbox", { name: "Select b" }));
  expect(onSelected).toHaveBeenLastCalledWith({ elsewhere: true, b: true });
  expect(all).toBePartiallyChecked();
  await userEvent.click(all);
  expect(onSelected).toHaveBeenLastCalledWith({ elsewhere: true, a: true, b: true });
  expect(all).toBeChecked();
  await userEvent.click(all);
  expect(onSelected).toHaveBeenLastCalledWith({ elsewhere: true });
});

it("labels self-explanatory columns for screen readers only", () => {
  screenOf(true);
  render(
    <DataTable
      label="Machines"
      data={["gpu-box"]}
      rowKey={(row) => row}
      columns={[
        { id: "name", header: "Name", cell: (row) => row },
        { id: "status", header: "Status", extra: true, plain: true, cell: () => "Running" },
      ]}
    />,
  );
  expect(screen.getByRole("term")).toHaveTextContent("Status");
  expect(screen.getByRole("term")).toHaveClass("sr-only");
  expect(screen.getByRole("definition")).toHaveTextContent("Running");
});

/** An observer of the parts of a long table; `show` says which are near the screen. */
class FakeObserver {
  static all: FakeObserver[] = [];
  readonly elements = new Set<Element>();
  readonly #report: (entries: Partial<IntersectionObserverEntry>[]) => void;
  constructor(report: (entries: Partial<IntersectionObserverEntry>[]) => void) {
    this.#report = report;
    FakeObserver.all.push(this);
  }
  observe(element: Element): void {
    this.elements.add(element);
  }
  unobserve(element: Element): void {
    this.elements.delete(element);
  }
  disconnect(): void {
    this.elements.clear();
  }
  show(near: (index: number) => boolean): void {
    this.#report(
      [...this.elements].map((target, index) => ({
        target,
        isIntersecting: near(index),
        boundingClientRect: { height: 2000 } as DOMRect,
      })),
    );
  }
}

it("renders only the parts of a long table near the screen", async () => {
  vi.stubGlobal("IntersectionObserver", FakeObserver);
  const rows = Array.from({ length: 2000 }, (_, index) => ({ name: `row${index}` }));
  render(
    <DataTable
      label="Many"
      data={rows}
      rowKey={(row) => row.name}
      columns={[
        { id: "name", header: "Name", cell: (row) => <button type="button">{row.name}</button> },
      ]}
    />,
  );
  const table = screen.getByRole("table", { name: "Many" });
  const count = () => within(table).getAllByRole("button").length;
  expect(count()).toBe(25);
  expect(table).toHaveAttribute("aria-rowcount", "2001");
  const observer = FakeObserver.all[0] as FakeObserver;
  expect(observer.elements.size).toBe(80);
  act(() => observer.show((index) => index === 20 || index === 21));
  expect(count()).toBe(50);
  const row = screen.getByRole("button", { name: "row500" });
  expect(row.closest("tr")).toHaveAttribute("aria-rowindex", "502");
  row.focus();
  act(() => observer.show((index) => index === 0));
  expect(row).toHaveFocus(); // its part stays
  expect(count()).toBe(50);
  row.blur();
  act(() => observer.show((index) => index === 0));
  expect(count()).toBe(25);
  const spaces = table.querySelectorAll("td[style]");
  expect(spaces).toHaveLength(79);
  expect((spaces[20] as HTMLElement).style.height).toBe("2000px"); // as high as it was
});

it("renders a table of 200 rows whole", () => {
  vi.stubGlobal("IntersectionObserver", FakeObserver);
  const rows = Array.from({ length: 200 }, (_, index) => ({ name: `row${index}` }));
  render(
    <DataTable
      label="Some"
      data={rows}
      rowKey={(row) => row.name}
      columns={[{ id: "name", header: "Name", cell: (row) => row.name }]}
    />,
  );
  expect(screen.getAllByRole("row")).toHaveLength(201);
  expect(screen.getByRole("table")).not.toHaveAttribute("aria-rowcount");
});
