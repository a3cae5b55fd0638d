import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { Dialog } from "../Dialog";
import { Toasts } from "../toast";
import { CodeBox } from "./CodeBox";

// As a page of plain HTTP has it: no clipboard of its own, only what is selected can be copied.
const selected = () =>
  document.activeElement instanceof HTMLTextAreaElement ? document.activeElement.value : "";
const copied: string[] = [];
beforeEach(() => {
  copied.length = 0;
  document.execCommand = () => {
    copied.push(selected());
    return selected() !== "";
  };
});
afterEach(() => vi.restoreAllMocks());

/** user-event brings a clipboard of its own. */
async function copy(): Promise<void> {
  const user = userEvent.setup();
  Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true });
  await user.click(screen.getByTestId("copy"));
}

it("copies out of a dialog, which takes the keyboard back from what is outside of it", async () => {
  render(
    <Dialog open onClose={() => undefined} title="The key is made">
      <CodeBox label="Key" command="hush" secret />
    </Dialog>,
  );
  await copy();
  expect(copied).toEqual(["hush"]);
  expect(screen.getByTestId("copy")).toHaveTextContent("Copied");
  expect(screen.getByTestId("copy")).toHaveFocus();
});

it("does not say that what the browser refused is copied", async () => {
  document.execCommand = () => false;
  render(
    <>
      <CodeBox label="Key" command="hush" secret />
      <Toasts />
    </>,
  );
  await copy();
  expect(await screen.findByText("The browser did not let it be copied")).toBeVisible();
  expect(screen.getByTestId("copy")).toHaveTextContent("Copy");
  expect(screen.queryByText("It is on the clipboard.")).toBeNull();
});
