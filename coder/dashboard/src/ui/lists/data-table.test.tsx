import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { DataTable } from "./DataTable";

function People({ seen }: { seen: number }) {
  return <DataTable label="People" data={[{ name: "ana" }]} rowKey={(row) => row.name} columns={[{ id: "name", header: "Name", cell: ({ row }) => <button type="button">{row.original.name}</button> }, { id: "seen", header: "Seen", cell: () => seen }]} />;
}

it("keeps the focus in a row that is shown anew", () => {
  const { rerender } = render(<People seen={1} />);
  const button = screen.getByRole("button", { name: "ana" });
  button.focus();
  rerender(<People seen={2} />);
  expect(screen.getByText("2")).toBeVisible();
  expect(screen.getByRole("button", { name: "ana" })).toBe(button);
  expect(button).toHaveFocus();
});
