import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";

import { DataTable } from "./DataTable";
import { setListView } from "./list-view";
import { Pager } from "./Pager";
import { nextSorting, sorted } from "./sorting";

afterEach(() => setListView({ size: 25, density: "normal" }));

it("turns from ascending to descending to the server's order", () => {
  const up = nextSorting(null, "name");
  expect(up).toEqual({ column: "name", down: false });
  const down = nextSorting(up, "name");
  expect(down).toEqual({ column: "name", down: true });
  expect(nextSorting(down, "name")).toBeNull();
  expect(nextSorting(down, "owner")).toEqual({ column: "owner", down: false });
});

it("sorts words with numbers, numbers, and keeps equal rows in order", () => {
  const rows = ["dev-10", "dev-2", "Dev-1"];
  expect(sorted(rows, (row) => row, false)).toEqual(["Dev-1", "dev-2", "dev-10"]);
  expect(sorted(rows, (row) => row.length, true)).toEqual(["dev-10", "dev-2", "Dev-1"]);
  expect(sorted(rows, undefined, false)).toEqual(rows);
});

const table = (total: number) => (
  <DataTable
    label="Machines"
    data={[
      { name: "b", cpu: 1 },
      { name: "a", cpu: 2 },
    ]}
    total={total}
    rowKey={(row) => row.name}
    columns={[
      {
        id: "name",
        header: "Name",
        sort: (row) => row.name,
        width: "60%",
        cell: (row) => row.name,
      },
      { id: "cpu", header: "Cores", sort: (row) => row.cpu, cell: (row) => row.cpu },
    ]}
  />
);
const names = () =>
  within(screen.getByRole("table"))
    .getAllByRole("row")
    .slice(1)
    .map((row) => row.textContent);

it("sorts by a heading and says that it sorts one page of a longer list", async () => {
  render(table(40));
  expect(names()).toEqual(["b1", "a2"]);
  await userEvent.click(screen.getByRole("button", { name: "Name" }));
  expect(names()).toEqual(["a2", "b1"]);
  expect(screen.getByRole("columnheader", { name: "Name" })).toHaveAttribute(
    "aria-sort",
    "ascending",
  );
  expect(screen.getByRole("status")).toHaveTextContent("within the 2 rows of this page");
  await userEvent.click(screen.getByRole("button", { name: "Name" }));
  expect(names()).toEqual(["b1", "a2"]);
});

it("says nothing about pages when all rows are loaded", async () => {
  render(table(2));
  await userEvent.click(screen.getByRole("button", { name: "Cores" }));
  expect(screen.queryByRole("status")).toBeNull();
});

it("keeps page size and density, and returns to the first page", async () => {
  const changed = vi.fn();
  render(<Pager page={2} size={25} total={80} stale={false} adjustable onChange={changed} />);
  await userEvent.selectOptions(screen.getByRole("combobox", { name: "Rows" }), "50");
  expect(changed).toHaveBeenCalledWith(1);
  await userEvent.click(screen.getByRole("button", { name: "Compact rows" }));
  expect(JSON.parse(localStorage.getItem("list-view") ?? "")).toEqual({
    size: 50,
    density: "compact",
  });
});
