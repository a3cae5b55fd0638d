import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it } from "vitest";

import { DetailsRow, useDetails } from "./DetailsRow";

function Sample() {
  return (
    <DetailsRow label="a job" details={<p>took 3 s</p>} {...useDetails()}>
      <p>Start workspace</p>
      <a href="#workspace">its workspace</a>
    </DetailsRow>
  );
}

afterEach(() => window.getSelection()?.removeAllRanges());

it.each([
  ["its text", () => screen.getByText("Start workspace")],
  ["its button", () => screen.getByRole("button", { name: "Details of a job" })],
])("opens and closes by a click on %s", async (_, target) => {
  render(<Sample />);
  expect(screen.queryByText("took 3 s")).toBeNull();
  await userEvent.click(target());
  expect(screen.getByText("took 3 s")).toBeVisible();
  expect(screen.getByRole("button")).toHaveAttribute("aria-expanded", "true");
  await userEvent.click(target());
  expect(screen.queryByText("took 3 s")).toBeNull();
});

it("leaves a click on a link to the link", async () => {
  render(<Sample />);
  await userEvent.click(screen.getByRole("link"));
  expect(screen.queryByText("took 3 s")).toBeNull();
});

it("stays as it is while text is selected", async () => {
  render(<Sample />);
  const text = screen.getByText("Start workspace");
  await userEvent.pointer([
    { keys: "[MouseLeft>]", target: text, offset: 0 },
    { target: text, offset: 5 },
    { keys: "[/MouseLeft]" },
  ]);
  expect(window.getSelection()?.toString()).toBe("Start");
  expect(screen.queryByText("took 3 s")).toBeNull();
});
