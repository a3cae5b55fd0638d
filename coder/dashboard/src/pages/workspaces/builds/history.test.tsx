import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";

import type { Workspace } from "../../../api/types";
import { visit } from "../../../test/world";
import { BuildHistory } from "./BuildHistory";

const AT = "2026-01-01T00:00:00Z";
const build = (number: number) => ({
  id: `b${number}`,
  build_number: number,
  transition: "start",
  reason: "initiator",
  initiator_name: "ana",
  template_version_name: "v1",
  created_at: AT,
  job: { status: "succeeded" },
});
const workspace = (latest: number) =>
  ({
    id: "w",
    name: "lab",
    owner_name: "ana",
    latest_build: { id: `b${latest}`, status: "running" },
  }) as unknown as Workspace;

it("loads back to the first build and keeps them", async () => {
  let latest = 60;
  function Page() {
    const [shown, setShown] = useState(latest);
    return (
      <>
        <button
          onClick={() => {
            latest = 61;
            setShown(61);
          }}
        >
          A build begins
        </button>
        <BuildHistory workspace={workspace(shown)} />
      </>
    );
  }
  visit([{ path: "/", Component: Page }], "/", {
    "GET /api/v2/workspaces/w/builds": (_: unknown, query: URLSearchParams) =>
      Array.from({ length: latest }, (__, index) => build(latest - index))
        .slice(Number(query.get("offset")))
        .slice(0, Number(query.get("limit"))),
  });
  const numbers = () =>
    screen.getAllByRole("link").map((link) => Number(/#(\d+)/.exec(link.textContent)?.[1]));
  const down = (from: number, to: number) =>
    Array.from({ length: from - to + 1 }, (_, index) => from - index);
  await screen.findByText(/#60/);
  expect(numbers()).toEqual(down(60, 36));
  await userEvent.click(screen.getByRole("button", { name: "Load older builds" }));
  await waitFor(() => expect(numbers()).toEqual(down(60, 11)));
  await userEvent.click(screen.getByRole("button", { name: "A build begins" }));
  await waitFor(() => expect(numbers()).toEqual(down(61, 12)));
  await userEvent.click(screen.getByRole("button", { name: "Load older builds" }));
  await waitFor(() => expect(numbers()).toEqual(down(61, 1)));
  expect(screen.queryByRole("button", { name: "Load older builds" })).toBeNull();
});
