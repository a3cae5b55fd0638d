import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";

import { Confirm } from "../Confirm";
import { Dialog } from "../Dialog";
import { Menu, MenuItem } from "../Menu";
import { TextField } from "../forms/Field";

function Opened({ from, vanishes = false }: { from: "button" | "menu"; vanishes?: boolean }) {
  const [open, setOpen] = useState(false);
  return (
    <main id="content" tabIndex={-1}>
      {from === "menu" ? (
        <Menu trigger={<button type="button">More</button>}>
          <MenuItem onSelect={() => setOpen(true)}>Delete…</MenuItem>
        </Menu>
      ) : open && vanishes ? null : (
        <button type="button" onClick={() => setOpen(true)}>
          Rename
        </button>
      )}
      <Dialog open={open} onClose={() => setOpen(false)} title="Question">
        <TextField label="Name" value="" onChange={() => undefined} autoFocus />
      </Dialog>
    </main>
  );
}

it("returns to the button that opened the dialog", async () => {
  render(<Opened from="button" />);
  await userEvent.click(screen.getByRole("button", { name: "Rename" }));
  expect(screen.getByLabelText("Name")).toHaveFocus();
  await userEvent.keyboard("{Escape}");
  await waitFor(() => expect(screen.getByRole("button", { name: "Rename" })).toHaveFocus());
});

it("returns to the button of the menu that opened the dialog", async () => {
  render(<Opened from="menu" />);
  await userEvent.click(screen.getByRole("button", { name: "More" }));
  await userEvent.keyboard("{ArrowDown}{Enter}");
  await waitFor(() => expect(screen.getByLabelText("Name")).toHaveFocus());
  await userEvent.keyboard("{Escape}");
  await waitFor(() => expect(screen.getByRole("button", { name: "More" })).toHaveFocus());
});

it("returns to the page's content if the button has disappeared", async () => {
  render(<Opened from="button" vanishes />);
  await userEvent.click(screen.getByRole("button", { name: "Rename" }));
  await userEvent.keyboard("{Escape}");
  await waitFor(() => expect(screen.getByRole("main")).not.toHaveAttribute("aria-hidden"));
  expect(document.body).not.toHaveFocus();
});

it("returns from a dialog that mounts when it opens", async () => {
  function Mounted() {
    const [open, setOpen] = useState(false);
    return (
      <>
        <button type="button" onClick={() => setOpen(true)}>
          End all
        </button>
        {open ? (
          <Confirm
            open
            onClose={() => setOpen(false)}
            title="End all?"
            confirm="End all"
            onConfirm={async () => undefined}
          >
            All end.
          </Confirm>
        ) : null}
      </>
    );
  }
  render(<Mounted />);
  await userEvent.click(screen.getByRole("button", { name: "End all" }));
  await userEvent.keyboard("{Escape}");
  await waitFor(() => expect(screen.getByRole("button", { name: "End all" })).toHaveFocus());
});
