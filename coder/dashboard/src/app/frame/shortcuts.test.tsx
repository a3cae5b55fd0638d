import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter } from "react-router";
import { afterEach, expect, it, vi } from "vitest";

import { setSingleKeys } from "../../features/appearance/single-keys";
import { ShortcutSheet } from "./ShortcutSheet";
import { useShortcuts } from "./shortcuts";

afterEach(() => setSingleKeys(true));

const palette = vi.fn();
const help = vi.fn();
function Page() {
  useShortcuts(true, palette, help);
  return (
    <main>
      <input aria-label="Search" data-shortcut="/" />
      <table>
        <thead>
          <tr>
            <th>
              <button type="button">Name</button>
            </th>
          </tr>
        </thead>
        <tbody>
          {["first", "second", "third"].map((name) => (
            <tr key={name}>
              <td>
                <input type="checkbox" aria-label={`Select ${name}`} />
                {name === "third" ? null : <a href={`/${name}`}>{name}</a>}
                <button type="button">Stop {name}</button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </main>
  );
}
const open = () =>
  render(
    <MemoryRouter>
      <Page />
    </MemoryRouter>,
  );

it("goes through the rows of a table, to the link of each", async () => {
  open();
  await userEvent.keyboard("j");
  expect(screen.getByRole("link", { name: "first" })).toHaveFocus();
  await userEvent.keyboard("jj");
  expect(screen.getByLabelText("Select third")).toHaveFocus(); // it has no link
  await userEvent.keyboard("j");
  expect(screen.getByLabelText("Select third")).toHaveFocus();
  await userEvent.keyboard("k");
  expect(screen.getByRole("link", { name: "second" })).toHaveFocus();
});

it("types letters into fields", async () => {
  open();
  await userEvent.keyboard("/jk?");
  expect(screen.getByLabelText("Search")).toHaveFocus();
  expect(screen.getByLabelText("Search")).toHaveValue("jk?");
  expect(help).not.toHaveBeenCalled();
});

it("ignores single keys if they are turned off, but not the palette's", async () => {
  const sheet = render(<ShortcutSheet onClose={() => undefined} />);
  await userEvent.click(screen.getByLabelText("Use single keys as shortcuts"));
  sheet.unmount();
  open();
  await userEvent.keyboard("j?");
  expect(screen.getByRole("link", { name: "first" })).not.toHaveFocus();
  expect(help).not.toHaveBeenCalled();
  await userEvent.keyboard("{Control>}k{/Control}");
  expect(palette).toHaveBeenCalledOnce();
});

it("goes from the search to the first row with the down arrow", async () => {
  open();
  await userEvent.keyboard("/x{ArrowDown}");
  expect(screen.getByRole("link", { name: "first" })).toHaveFocus();
  await userEvent.keyboard("{ArrowDown}"); // scrolls elsewhere
  expect(screen.getByRole("link", { name: "first" })).toHaveFocus();
});
