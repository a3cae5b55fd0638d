import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it, vi } from "vitest";

import { safeImage } from "./Avatar";
import { Chart } from "./Chart";
import { CodeBox } from "./text/CodeBox";
import { Combobox } from "./forms/Combobox";
import { Confirm } from "./Confirm";
import { Dialog } from "./Dialog";
import { Switch } from "./forms/Toggle";
import { TextField } from "./forms/Field";
import { Markdown } from "./text/Markdown";
import { ago, duration } from "../lib/time";

describe("Confirm", () => {
  it("stays open during the request and shows a rejection", async () => {
    let refuse = (_: Error): void => undefined;
    const close = vi.fn();
    render(
      <Confirm
        open
        onClose={close}
        title="Delete dev?"
        confirm="Delete"
        onConfirm={() =>
          new Promise((_, fail) => {
            refuse = fail;
          })
        }
      >
        All is lost.
      </Confirm>,
    );
    await userEvent.click(screen.getByTestId("confirm-button"));
    await userEvent.keyboard("{Escape}");
    await userEvent.click(screen.getByRole("button", { name: "Close" }));
    expect(screen.getByRole("button", { name: "Cancel" })).toBeDisabled();
    refuse(new Error("It is still used."));
    expect(await screen.findByText("It is still used.")).toBeVisible();
    expect(close).not.toHaveBeenCalled();
    await userEvent.keyboard("{Escape}");
    expect(close).toHaveBeenCalledOnce();
  });

  it("requires typing the name", async () => {
    const act = vi.fn(async () => undefined);
    render(
      <Confirm
        open
        onClose={() => undefined}
        title="Delete dev?"
        confirm="Delete"
        typed="dev"
        onConfirm={act}
      >
        All is lost.
      </Confirm>,
    );
    const button = screen.getByTestId("confirm-button");
    expect(button).toBeDisabled();
    await userEvent.type(screen.getByTestId("delete-dialog-name-confirmation"), "de");
    expect(button).toBeDisabled();
    await userEvent.type(screen.getByTestId("delete-dialog-name-confirmation"), "v{Enter}");
    expect(act).toHaveBeenCalledOnce();
  });

  it("has one cancel button", () => {
    const { rerender } = render(
      <Confirm
        open
        onClose={() => undefined}
        title="Delete dev?"
        confirm="Delete"
        onConfirm={async () => undefined}
      >
        All is lost.
      </Confirm>,
    );
    expect(screen.getByRole("button", { name: "Cancel" })).toBeVisible();
    rerender(
      <Confirm
        open
        onClose={() => undefined}
        title="Leave?"
        confirm="Cancel import"
        onConfirm={async () => undefined}
      >
        It ends.
      </Confirm>,
    );
    expect(screen.getAllByRole("button", { name: /Cancel/ })).toEqual([
      screen.getByTestId("confirm-button"),
    ]);
    expect(screen.getByRole("button", { name: "Go back" })).toBeVisible();
  });

  it("stays open and shows a failure", async () => {
    const close = vi.fn();
    render(
      <Confirm
        open
        onClose={close}
        title="Delete dev?"
        confirm="Delete"
        onConfirm={() => Promise.reject(new Error("It is in use."))}
      >
        All is lost.
      </Confirm>,
    );
    await userEvent.click(screen.getByTestId("confirm-button"));
    expect(await screen.findByRole("alert")).toHaveTextContent("It is in use.");
    expect(close).not.toHaveBeenCalled();
  });
});

describe("CodeBox", () => {
  it("hides the token until revealed", async () => {
    render(<CodeBox label="Command" command={'CODER_AGENT_TOKEN="abc" sh'} />);
    expect(screen.getByTestId("command")).not.toHaveTextContent("abc");
    await userEvent.click(screen.getByRole("button", { name: "Show token" }));
    expect(screen.getByTestId("command")).toHaveTextContent('CODER_AGENT_TOKEN="abc" sh');
  });
});

describe("Combobox", () => {
  it("finds one among five thousand by keyboard", async () => {
    const options = Array.from({ length: 5000 }, (_, index) => ({
      value: `v${index}`,
      text: `Region ${index}`,
    }));
    const Example = () => {
      const [value, setValue] = useState("");
      return <Combobox label="Region" value={value} onChange={setValue} options={options} />;
    };
    render(<Example />);
    await userEvent.click(screen.getByRole("combobox", { name: "Region" }));
    expect(screen.getAllByRole("option")).toHaveLength(100);
    await userEvent.type(screen.getByRole("searchbox"), "4711{Enter}");
    expect(screen.getByRole("combobox", { name: "Region" })).toHaveTextContent("Region 4711");
  });
});

describe("Markdown", () => {
  it.each([
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "[a](javascript:alert(1))",
    "![a](javascript:alert(1))",
    '<a href="javascript:alert(1)">a</a>',
  ])("%s runs nothing", (text) => {
    const { container } = render(<Markdown text={text} />);
    expect(
      container.querySelector("script, [onerror], [href^='javascript'], [src^='javascript']"),
    ).toBeNull();
  });
});

describe("pictures", () => {
  it.each([
    ["javascript:alert(1)", null],
    ["data:text/html,x", null],
    ["/icon/docker.svg", "/icon/docker.svg"],
    ["https://example.com/a.png", "https://example.com/a.png"],
    ["", null],
  ])("%s → %s", (source, result) => {
    expect(safeImage(source)).toBe(result);
  });
});

describe("moments", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  it.each([
    ["2026-01-01T23:59:50Z", "just now"],
    ["2026-01-01T22:00:00Z", "2 hours ago"],
    ["2026-01-01T00:00:00Z", "1 day ago"],
    ["2026-01-02T03:00:00Z", "in 3 hours"],
    ["2026-01-08T23:55:00Z", "in 7 days"],
    ["2026-01-08T12:00:00Z", "in 6 days"],
    ["2026-01-02T01:30:00Z", "in 1 hour"],
    ["0001-01-01T00:00:00Z", "never"],
    ["", "never"],
  ])("%s is %s", (at, words) => {
    expect(ago(at, now)).toBe(words);
  });
  it.each([
    [400, "0.4s"],
    [42_000, "42s"],
    [125_000, "2m 5s"],
    [11_400_000, "3h 10m"],
  ])("%d ms is %s", (ms, words) => {
    expect(duration(ms)).toBe(words);
  });
});

describe("fields", () => {
  it("keep label and hint above controls next to the input", () => {
    render(
      <TextField
        label="Password"
        hint="At least eight."
        value=""
        onChange={() => undefined}
        control={<button type="button">Generate</button>}
      />,
    );
    const input = screen.getByLabelText("Password");
    expect(input).toHaveAccessibleDescription("At least eight.");
    expect(input.parentElement).toContainElement(screen.getByRole("button", { name: "Generate" }));
    expect(input.parentElement).not.toContainElement(screen.getByText("At least eight."));
  });

  it("have an accessible name when the label is hidden", () => {
    render(<Switch label="All of them" hideLabel checked onChange={() => undefined} />);
    expect(screen.getByRole("switch", { name: "All of them" })).toBeChecked();
  });
});

describe("Chart", () => {
  it("says that there is nothing instead of an empty grid", () => {
    render(
      <Chart
        label="Users"
        times={[0, 86_400_000]}
        series={[{ name: "Users", values: [0, null] }]}
        nothing="No users yet."
      />,
    );
    expect(screen.getByText("No users yet.")).toBeVisible();
    expect(screen.queryByRole("figure")).toBeNull();
  });
});

describe("Dialog", () => {
  it("hides the page and closes only by its own controls when covering", () => {
    render(
      <Dialog open covers onClose={() => undefined} title="Signed out">
        hush
      </Dialog>,
    );
    expect(screen.queryByRole("button", { name: "Close" })).toBeNull();
    // As high as the content of a dialog opened before, and later in the document: above it.
    expect(document.querySelector(".fixed.inset-0")).toHaveClass("bg-bg", "z-50");
  });

  it.each([
    [false, 1],
    [true, 0],
  ])("held %s: closed %d times by Escape, and always by its button", async (held, times) => {
    const close = vi.fn();
    render(
      <Dialog open held={held} onClose={close} title="Provisioner key created">
        hush
      </Dialog>,
    );
    await userEvent.keyboard("{Escape}");
    expect(close).toHaveBeenCalledTimes(times);
    await userEvent.click(screen.getByRole("button", { name: "Close" }));
    expect(close).toHaveBeenCalledTimes(times + 1);
  });
});
