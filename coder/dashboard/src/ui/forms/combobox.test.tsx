import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { Combobox, type Choice } from "./Combobox";

const BEFORE: Choice[] = [
  { value: "g", text: "Backend" },
  { value: "a", text: "ana" },
];

async function type(options: Choice[], onChange: (value: string) => void, text: string) {
  const page = (shown: Choice[]) => (
    <Combobox
      label="User"
      value=""
      onChange={onChange}
      options={shown}
      onSearch={() => undefined}
    />
  );
  const { rerender } = render(page(options));
  await userEvent.click(screen.getByRole("combobox"));
  await userEvent.type(screen.getByRole("searchbox"), text);
  return (next: Choice[]) => rerender(page(next));
}

it("selects nothing by Enter before the answer", async () => {
  const chosen = vi.fn();
  const answer = await type(BEFORE, chosen, "frida{Enter}");
  expect(chosen).not.toHaveBeenCalled();
  answer([{ value: "f", text: "frida" }]);
  await userEvent.keyboard("{Enter}");
  expect(chosen).toHaveBeenCalledWith("f");
});

it("reaches server matches by keyboard", async () => {
  const chosen = vi.fn();
  const answer = await type(BEFORE, chosen, "smith");
  answer([{ value: "f", text: "frida" }]);
  await userEvent.keyboard("{Enter}");
  expect(chosen).not.toHaveBeenCalled();
  await userEvent.keyboard("{ArrowDown}{Enter}");
  expect(chosen).toHaveBeenCalledWith("f");
});

it.each(["{ArrowDown}", "{ArrowUp}", "{Enter}", " "])("opens by %s", async (key) => {
  render(<Combobox label="User" value="" onChange={() => undefined} options={BEFORE} />);
  screen.getByRole("combobox").focus();
  await userEvent.keyboard(key);
  expect(await screen.findByRole("searchbox")).toHaveFocus();
});
