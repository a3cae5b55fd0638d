import { expect, it, vi } from "vitest";

import { drawn } from "./Chart";

vi.mock("uplot", () => ({ default: class {} })); // queries window APIs that jsdom lacks

it("draws no zero bars, but all points of a line", () => {
  expect(drawn([0, 2, null, 0], true)).toEqual([null, 2, null, null]);
  expect(drawn([0, 2, null, 0], false)).toEqual([0, 2, null, 0]);
});
