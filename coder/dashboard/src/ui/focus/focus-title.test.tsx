import { act, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";

import { Tag } from "../Badge";
import { Button, IconButton } from "../Button";
import { Hint } from "../Hint";
import { FocusTitle } from "./FocusTitle";

// jsdom draws no focus: here each focused element has the keyboard's.
beforeEach(() => {
  const matches = Element.prototype.matches;
  vi.spyOn(Element.prototype, "matches").mockImplementation(function (this: Element, selector) {
    return matches.call(this, selector === ":focus-visible" ? ":focus" : selector);
  });
  return () => vi.restoreAllMocks();
});

// Each kind of element with an explanation -> the text that the keyboard gets to see.
it.each([
  ["an icon button", <IconButton label="Delete dev">x</IconButton>, "Delete dev"],
  [
    "a disabled button",
    <Button disabled title="Build first.">
      Publish
    </Button>,
    "Build first.",
  ],
  ["a tag", <Tag title="Used for one build only.">Ephemeral</Tag>, "Used for one build only."],
  ["a word", <Hint text="Round trip.">Latency</Hint>, "Round trip."],
  ["a word without explanation", <Button>Plain</Button>, null],
  ["a title that repeats the text", <Button title="Stop">Stop</Button>, null],
])("shows the title of %s", async (_, element, text) => {
  render(
    <>
      {element}
      <FocusTitle />
    </>,
  );
  await userEvent.tab();
  expect(screen.queryByTestId("focus-title")?.textContent ?? null).toBe(text);
  await userEvent.keyboard("{Escape}");
  expect(screen.queryByTestId("focus-title")).toBeNull();
});

it("hides with the focus", async () => {
  render(
    <>
      <IconButton label="Delete dev">x</IconButton>
      <FocusTitle />
    </>,
  );
  await userEvent.tab();
  expect(screen.getByTestId("focus-title")).toBeVisible();
  act(() => screen.getByRole("button").blur());
  expect(screen.queryByTestId("focus-title")).toBeNull();
});

it.each([
  [-200, "108px"],
  [990, "916px"],
  [300, "5px"],
])("shows a text that begins at %i px in the window", async (begin, left) => {
  vi.spyOn(window, "innerWidth", "get").mockReturnValue(1024);
  vi.spyOn(Element.prototype, "getBoundingClientRect").mockImplementation(function (this: Element) {
    const title = this.getAttribute("data-testid") === "focus-title";
    return title ? new DOMRect(begin, 0, 200, 30) : new DOMRect(0, 0, 10, 10);
  });
  render(
    <>
      <IconButton label="Delete dev">x</IconButton>
      <FocusTitle />
    </>,
  );
  await userEvent.tab();
  expect(screen.getByTestId("focus-title").style.left).toBe(left);
});
