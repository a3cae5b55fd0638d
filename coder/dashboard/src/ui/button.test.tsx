import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState, type FormEvent } from "react";
import { describe, expect, it, vi } from "vitest";

import { Button, IconButton } from "./Button";
import { Menu, MenuItem } from "./Menu";

it("shows an icon button that is busy with the sign of that alone", () => {
  render(
    <IconButton label="Refresh" busy>
      <svg data-testid="icon" />
    </IconButton>,
  );
  expect(screen.queryByTestId("icon")).toBeNull();
  expect(screen.getByRole("button", { name: "Refresh" }).children).toHaveLength(1);
});

describe("a button that is disabled while it has the focus", () => {
  it.each([["busy"], ["disabled"]] as const)(
    "keeps it while %s, and acts no more",
    async (state) => {
      const acts = vi.fn();
      function Page() {
        const [off, setOff] = useState(false);
        return (
          <>
            <Button
              {...{ [state]: off }}
              onClick={() => {
                acts();
                setOff(true);
              }}
            >
              Save
            </Button>
            <Button>Next</Button>
          </>
        );
      }
      render(<Page />);
      const save = screen.getByRole("button", { name: "Save" });
      save.focus();
      await userEvent.keyboard("{Enter}{Enter} ");
      expect(acts).toHaveBeenCalledOnce();
      expect(save).toHaveFocus();
      expect(save).toBeEnabled(); // a disabled element has no focus in a browser
      expect(save).toHaveAttribute("aria-disabled", "true");
      await userEvent.tab();
      expect(screen.getByRole("button", { name: "Next" })).toHaveFocus();
      expect(save).toBeDisabled();
    },
  );

  it("can get it if a text gives the reason", async () => {
    render(
      <>
        <p id="reason">Fix the parameters.</p>
        <Button disabled aria-describedby="reason">
          Create
        </Button>
      </>,
    );
    await userEvent.tab();
    const create = screen.getByRole("button", { name: "Create" });
    expect(create).toHaveFocus();
    expect(create).toHaveAccessibleDescription("Fix the parameters.");
    expect(create).toHaveAttribute("aria-disabled", "true");
  });

  it("submits its form no more", async () => {
    const submit = vi.fn((event: FormEvent) => event.preventDefault());
    const form = (busy: boolean) => (
      <form onSubmit={submit}>
        <Button type="submit" busy={busy}>
          Send
        </Button>
      </form>
    );
    const { rerender } = render(form(false));
    screen.getByRole("button").focus();
    await userEvent.keyboard("{Enter}");
    rerender(form(true));
    await userEvent.keyboard("{Enter} ");
    expect(submit).toHaveBeenCalledOnce();
  });

  it("opens no menu", async () => {
    const menu = (busy: boolean) => (
      <Menu trigger={<Button busy={busy}>More</Button>}>
        <MenuItem>Delete</MenuItem>
      </Menu>
    );
    const { rerender } = render(menu(false));
    screen.getByRole("button").focus();
    rerender(menu(true));
    await userEvent.keyboard("{Enter}{ArrowDown}");
    expect(screen.queryByRole("menu")).toBeNull();
    rerender(menu(false));
    await userEvent.keyboard("{Enter}");
    expect(await screen.findByRole("menu")).toBeVisible();
  });
});

it("closes its menu by Tab, and has the focus then", async () => {
  render(
    <Menu trigger={<Button>More</Button>}>
      <MenuItem>Delete</MenuItem>
    </Menu>,
  );
  screen.getByRole("button").focus();
  await userEvent.keyboard("{Enter}");
  await userEvent.keyboard("{Tab}");
  await waitFor(() => expect(screen.getByRole("button", { name: "More" })).toHaveFocus());
  expect(screen.queryByRole("menu")).toBeNull();
});

it("is reached by the keyboard if it gives the reason why it is disabled", async () => {
  const act = vi.fn();
  render(
    <>
      <Button disabled title="Build your changes before you publish." onClick={act}>
        Publish
      </Button>
      <Button disabled>Silent</Button>
      <IconButton disabled label="Remove">
        x
      </IconButton>
      <Button>Last</Button>
    </>,
  );
  await userEvent.tab();
  expect(screen.getByRole("button", { name: "Publish" })).toHaveFocus();
  await userEvent.keyboard("{Enter}");
  await userEvent.click(screen.getByRole("button", { name: "Publish" }));
  expect(act).not.toHaveBeenCalled();
  await userEvent.tab();
  expect(screen.getByRole("button", { name: "Last" })).toHaveFocus();
});
