import { fireEvent, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { useState } from "react";
import { Combobox } from "./forms/Combobox";
import { FilterBar } from "./lists/FilterBar";
import { keyOf } from "./keys";
import { MemoryRouter } from "react-router";

const pressed = vi.fn();
const field = () => <input aria-label="Words" onKeyDown={(event) => pressed(keyOf(event))} />;

it.each([
  ["a key", { key: "Enter" }, "Enter"],
  ["a key that an input method takes", { key: "Enter", isComposing: true }, ""],
  ["the key that ends composing in Safari", { key: "Enter", keyCode: 229 }, ""],
])("identifies %s", (_, event, expected) => {
  render(field());
  fireEvent.keyDown(screen.getByLabelText("Words"), event);
  expect(pressed).toHaveBeenLastCalledWith(expected);
});

it("ignores keys of an input method", async () => {
  const sent = vi.fn(),
    chosen = vi.fn();
  const Page = () => {
    const [filter, setFilter] = useState("");
    return (
      <MemoryRouter>
        <FilterBar
          label="Search things"
          placeholder=""
          filter={filter}
          onChange={(next) => {
            sent(next);
            setFilter(next);
          }}
        />
        <Combobox label="User" value="" onChange={chosen} options={[{ value: "a", text: "ana" }]} />
      </MemoryRouter>
    );
  };
  render(<Page />);
  const search = screen.getByRole("searchbox");
  fireEvent.change(search, { target: { value: "に" } });
  fireEvent.keyDown(search, { key: "Enter", isComposing: true });
  expect(sent).not.toHaveBeenCalled();
  fireEvent.keyDown(search, { key: "Enter" });
  expect(sent).toHaveBeenCalledWith("に");
  await userEvent.click(screen.getByRole("combobox"));
  const options = screen.getByRole("searchbox", { name: "Search options" });
  fireEvent.keyDown(options, { key: "Enter", isComposing: true });
  expect(chosen).not.toHaveBeenCalled();
  fireEvent.keyDown(options, { key: "Enter" });
  expect(chosen).toHaveBeenCalledWith("a");
});
