import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { Dialog } from "../Dialog";
import { Toasts } from "../toast";
import { CodeBox } from "./CodeBox";

// As on a plain-HTTP page: no clipboard API, only a selection can be copied.
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

it("copies from a dialog that traps the focus", async () => {
  render(
    <Dialog open onClose={() => undefined} title="Provisioner key created">
      <CodeBox label="Key" command="hush" secret />
    </Dialog>,
  );
  await copy();
  expect(copied).toEqual(["hush"]);
  expect(screen.getByTestId("copy")).toHaveTextContent("Copied");
  expect(screen.getByTestId("copy")).toHaveFocus();
});

it("does not claim a copy that the browser refused", async () => {
  document.execCommand = () => false;
  render(
    <>
      <CodeBox label="Key" command="hush" secret />
      <Toasts />
    </>,
  );
  await copy();
  expect(await screen.findByText("Failed to copy")).toBeVisible();
  expect(screen.getByTestId("copy")).toHaveTextContent("Copy");
  expect(screen.queryByText("Copied to the clipboard.")).toBeNull();
});
