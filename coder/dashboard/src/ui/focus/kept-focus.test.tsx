import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { cloneElement, useState, type ReactElement, type ReactNode } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { Combobox } from "../forms/Combobox";
import { BACKWARDS, keepFocus } from "./kept-focus";

let stop = (): void => undefined;
beforeEach(() => {
  stop = keepFocus();
});
afterEach(() => stop());

/** A page in which the button "Press" leads from the first content to the second. */
function Page({ parts }: { parts: (press: ReactNode, pressed: boolean) => ReactNode }) {
  const [pressed, setPressed] = useState(false);
  const press = (
    <button key="press" type="button" onClick={() => setPressed(true)}>
      Press
    </button>
  );
  return (
    <>
      <header>
        <a href="/">Home</a>
      </header>
      <main id="content" tabIndex={-1}>
        {parts(press, pressed)}
      </main>
    </>
  );
}

const other = (name: string) => (
  <button key={name} type="button">
    {name}
  </button>
);
// How a focused control disappears -> the control that gets the focus.
const CASES: Record<string, [string, (press: ReactNode, pressed: boolean) => ReactNode]> = {
  "another takes its place": [
    "Stop",
    (press, pressed) => [other("Before"), pressed ? other("Stop") : press, other("After")],
  ],
  "the next one follows": [
    "After",
    (press, pressed) => [other("Before"), pressed ? null : press, other("After")],
  ],
  "it was the last of its group": [
    "Before",
    (press, pressed) => [
      <p key="group">
        {other("Before")}
        {pressed ? null : press}
      </p>,
      other("Elsewhere"),
    ],
  ],
  "the control before replaces it": [
    "Before",
    (press, pressed) => [
      other("First"),
      other("Before"),
      pressed ? null : cloneElement(press as ReactElement, BACKWARDS),
      other("After"),
    ],
  ],
  "nothing before it can be used": [
    "After",
    (press, pressed) => [
      <button key="off" type="button" disabled>
        Off
      </button>,
      pressed ? null : cloneElement(press as ReactElement, BACKWARDS),
      other("After"),
    ],
  ],
  "its row disappears": [
    "Second",
    (press, pressed) => (
      <ul>
        {pressed ? null : <li key="1">{press}</li>}
        <li key="2">{other("Second")}</li>
      </ul>
    ),
  ],
  "its group has no other control": [
    "After",
    (press, pressed) => [
      other("Before"),
      <p key="group">{pressed ? "Done." : press}</p>,
      other("After"),
    ],
  ],
  "a disabled control follows": [
    "After",
    (press, pressed) => [
      pressed ? null : press,
      <button key="off" type="button" disabled>
        Off
      </button>,
      other("After"),
    ],
  ],
  "its field remains": [
    "Search",
    (press, pressed) => (
      <div>
        <input aria-label="Search" />
        {pressed ? null : press}
      </div>
    ),
  ],
};

it.each(Object.entries(CASES))("moves on if %s", async (_, [target, parts]) => {
  render(<Page parts={parts} />);
  screen.getByRole("button", { name: "Press" }).focus();
  await userEvent.keyboard("{Enter}");
  await waitFor(() =>
    expect(
      screen.getByRole(target === "Search" ? "textbox" : "button", { name: target }),
    ).toHaveFocus(),
  );
});

it("goes to the content of a page without another control", async () => {
  render(<Page parts={(press, pressed) => (pressed ? "Done." : press)} />);
  screen.getByRole("button", { name: "Press" }).focus();
  await userEvent.keyboard("{Enter}");
  await waitFor(() => expect(screen.getByRole("main")).toHaveFocus());
});

it("goes to the content of the page that takes the place of the whole page", async () => {
  function Pages() {
    const [created, setCreated] = useState(false);
    return (
      <>
        {created ? (
          <>
            <a href="#content">Skip to content</a>
            <main key="workspaces" id="content" tabIndex={-1}>
              {other("New workspace")}
            </main>
          </>
        ) : (
          <main key="set-up">
            <button type="button" onClick={() => setCreated(true)}>
              Create account
            </button>
          </main>
        )}
        <div data-toasts>{created ? other("Dismiss") : null}</div>
      </>
    );
  }
  render(<Pages />);
  screen.getByRole("button", { name: "Create account" }).focus();
  await userEvent.keyboard("{Enter}");
  await waitFor(() => expect(screen.getByRole("main")).toHaveFocus());
});

it("moves on from a popup whose button was disabled by its choice", async () => {
  function Choose() {
    const [chosen, setChosen] = useState("");
    return (
      <main id="content" tabIndex={-1}>
        <Combobox
          label="Language"
          value=""
          disabled={chosen !== ""}
          options={[{ value: "go", text: "Go" }]}
          onChange={setChosen}
        />
        {other("Remove Go")}
        <footer>{other("Elsewhere")}</footer>
      </main>
    );
  }
  render(<Choose />);
  screen.getByRole("combobox").focus();
  await userEvent.keyboard("{ArrowDown}");
  await screen.findByRole("searchbox");
  await userEvent.keyboard("{Enter}");
  await waitFor(() => expect(screen.getByRole("button", { name: "Remove Go" })).toHaveFocus());
});

it("returns to a control that was disabled for a moment", async () => {
  const { rerender } = render(<input aria-label="Name" />);
  const field = screen.getByLabelText("Name");
  field.focus();
  rerender(<input aria-label="Name" disabled />);
  // A browser takes the focus from a disabled control, jsdom does not.
  const active = vi.spyOn(document, "activeElement", "get").mockReturnValue(document.body);
  const focus = vi.spyOn(field, "focus");
  await Promise.resolve(); // for the observer of the change
  rerender(<input aria-label="Name" />);
  await waitFor(() => expect(focus).toHaveBeenCalledOnce());
  active.mockRestore();
});

it("leaves the focus of a pointer alone", async () => {
  render(<Page parts={(press, pressed) => [pressed ? null : press, other("After")]} />);
  await userEvent.click(screen.getByRole("button", { name: "Press" }));
  await new Promise((done) => setTimeout(done, 100));
  expect(document.body).toHaveFocus();
});
