import { render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { Pager } from "./Pager";

const show = (page: number, total: number, stale = false) => {
  const changed = vi.fn();
  render(<Pager page={page} size={25} total={total} stale={stale} onChange={changed} />);
  return changed;
};

it.each([
  [2, 25, 1],
  [9, 60, 3],
  [3, 0, 1],
])("moves from page %d of a list of %d to page %d, the last one", (page, total, last) => {
  expect(show(page, total)).toHaveBeenCalledWith(last);
  expect(screen.queryByRole("navigation")).toBeNull();
});

it("stays while the total belongs to another list", () => {
  expect(show(3, 10, true)).not.toHaveBeenCalled();
});

it.each([
  [1, 0],
  [1, 25],
  [2, 26],
])("stays at page %d of a list of %d", (page, total) => {
  expect(show(page, total)).not.toHaveBeenCalled();
});

it("is not shown below an empty list, even an adjustable one", () => {
  render(<Pager page={1} size={25} total={0} stale={false} adjustable onChange={vi.fn()} />);
  expect(screen.queryByRole("navigation")).toBeNull();
});
