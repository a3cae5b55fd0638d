import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState, type ReactNode } from "react";
import { expect, it } from "vitest";

import { Confirm } from "../Confirm";
import { Dialog } from "../Dialog";
import { Menu, MenuItem } from "../Menu";
import { TextField } from "../forms/Field";
import { focusOrigin, useFocusReturnOnUnmount } from "./focus-return";

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

it("returns to the control before the button that has disappeared", async () => {
  function Rows() {
    const [asked, ask] = useState(false);
    const [ended, end] = useState(false);
    return (
      <main id="content" tabIndex={-1}>
        <button type="button">Update password</button>
        {ended ? null : (
          <button type="button" onClick={() => ask(true)}>
            End session…
          </button>
        )}
        <Dialog open={asked} onClose={() => ask(false)} title="End it?">
          <button
            type="button"
            onClick={() => {
              end(true);
              ask(false);
            }}
          >
            End session
          </button>
        </Dialog>
      </main>
    );
  }
  render(<Rows />);
  await userEvent.tab();
  await userEvent.tab();
  await userEvent.keyboard("{Enter}");
  await userEvent.click(screen.getByRole("button", { name: "End session" }));
  await waitFor(() =>
    expect(screen.getByRole("button", { name: "Update password" })).toHaveFocus(),
  );
});

interface PaletteProps {
  origin: HTMLElement | null;
  leaves: boolean;
  onChoose: () => void;
}

function Palette({ origin, leaves, onChoose }: PaletteProps) {
  const leave = useFocusReturnOnUnmount(origin);
  const choose = () => {
    if (leaves) leave();
    onChoose();
  };
  return (
    <button type="button" autoFocus onClick={choose}>
      Choose
    </button>
  );
}

/** A palette in whose place a page appears at once. */
function Chosen({ page, leaves }: { page: ReactNode; leaves: boolean }) {
  const [palette, setPalette] = useState<{ origin: HTMLElement | null } | null>(null);
  const [chosen, setChosen] = useState(false);
  const choose = () => {
    setPalette(null);
    setChosen(true);
  };
  return (
    <>
      <button type="button" onClick={() => setPalette({ origin: focusOrigin() })}>
        Search
      </button>
      <main id="content" tabIndex={-1} aria-label="Content">
        {chosen ? page : null}
      </main>
      {palette ? <Palette origin={palette.origin} leaves={leaves} onChoose={choose} /> : null}
    </>
  );
}

it.each([
  ["the first field of the page that has opened", true, "textbox", "Name"],
  ["the content of the page that has opened", true, "main", "Content"],
  ["the button before, if no page has opened", false, "button", "Search"],
] as const)("leaves the focus of a closed palette on %s", async (_, leaves, role, name) => {
  const page = role === "textbox" ? <input aria-label={name} autoFocus /> : "A list";
  render(<Chosen page={page} leaves={leaves} />);
  await userEvent.click(screen.getByRole("button", { name: "Search" }));
  await userEvent.keyboard("{Enter}");
  await waitFor(() => expect(screen.getByRole(role, { name })).toHaveFocus());
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
