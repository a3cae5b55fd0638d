import { act, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { TerminalSearch } from "./TerminalSearch";

it("searches while typing, steps through matches, counts, closes", async () => {
  let reportResults = (_: { resultIndex: number; resultCount: number }): void => undefined;
  const searches: string[] = [];
  const dispose = vi.fn();
  const search = {
    findNext: (term: string, options?: { incremental?: boolean }) => {
      searches.push(`${options?.incremental ? "typed" : "next"} ${term}`);
      return true;
    },
    findPrevious: (term: string) => {
      searches.push(`back ${term}`);
      return true;
    },
    clearDecorations: () => {
      searches.push("cleared");
    },
    onDidChangeResults: (listener: typeof reportResults) => {
      reportResults = listener;
      return { dispose };
    },
  };
  const close = vi.fn();
  const { unmount } = render(
    <TerminalSearch
      search={search}
      marks={() => ({ matchOverviewRuler: "#000000", activeMatchColorOverviewRuler: "#000000" })}
      onClose={close}
    />,
  );
  const field = screen.getByLabelText("Search the terminal");
  expect(field).toHaveFocus();
  await userEvent.type(field, "ab");
  await userEvent.keyboard("{Enter}{Shift>}{Enter}{/Shift}");
  await userEvent.click(screen.getByRole("button", { name: "Next match" }));
  await userEvent.click(screen.getByRole("button", { name: "Previous match" }));
  expect(searches).toEqual(["typed a", "typed ab", "next ab", "back ab", "next ab", "back ab"]);
  for (const [resultIndex, resultCount, message] of [
    [1, 5, "2 of 5"],
    [-1, 1000, "more than 1000"],
    [-1, 0, "No results"],
  ] as const) {
    act(() => reportResults({ resultIndex, resultCount }));
    expect(screen.getByRole("status")).toHaveTextContent(message);
  }
  await userEvent.clear(field);
  expect(searches.at(-1)).toBe("cleared");
  expect(screen.getByRole("status")).toHaveTextContent("");
  await userEvent.type(field, "{Escape}");
  expect(close).toHaveBeenCalledOnce();
  unmount();
  expect(dispose).toHaveBeenCalledOnce();
});
