import { expect, it, vi } from "vitest";

import { drawn } from "./Chart";

vi.mock("uplot", () => ({ default: class {} })); // asks the window for what jsdom has not

it("draws no bar where there is nothing to count, and every point of a line", () => {
  expect(drawn([0, 2, null, 0], true)).toEqual([null, 2, null, null]);
  expect(drawn([0, 2, null, 0], false)).toEqual([0, 2, null, 0]);
});
