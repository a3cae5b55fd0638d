import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { useBuildKey } from "./useBuildKey";

const typed = vi.fn();
const built = vi.fn();

function Editor({ busy = false, asks = false }: { busy?: boolean; asks?: boolean }) {
  useBuildKey(built, busy);
  return (
    <>
      <textarea onKeyDown={typed} />
      {asks ? <div role="dialog" /> : null}
    </>
  );
}

it.each([
  ["builds, and the editor does not see the key", {}, "{Control>}{Enter}{/Control}", 1, false],
  ["builds by the Mac's key", {}, "{Meta>}{Enter}{/Meta}", 1, false],
  ["does not build twice", { busy: true }, "{Control>}{Enter}{/Control}", 0, false],
  ["leaves the keys to a dialog", { asks: true }, "{Control>}{Enter}{/Control}", 0, true],
  ["leaves Enter to the editor", {}, "{Enter}", 0, true],
])("%s", async (_, state, keys, builds, seen) => {
  built.mockClear();
  render(<Editor {...state} />);
  screen.getByRole("textbox").focus();
  typed.mockClear();
  await userEvent.keyboard(keys);
  expect(built).toHaveBeenCalledTimes(builds);
  const entered = typed.mock.calls.some(([event]) => (event as KeyboardEvent).key === "Enter");
  expect(entered).toBe(seen);
});
