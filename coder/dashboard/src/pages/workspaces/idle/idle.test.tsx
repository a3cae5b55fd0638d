import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import type { Workspace } from "../../../api/types";
import { visit } from "../../../test/world";
import { idleOf, savedHours, totals } from "./idle";
import { IdlePage } from "./IdlePage";

const NOW = Date.parse("2026-11-29T12:00:00Z");
const ago = (hours: number) => new Date(NOW - hours * 3_600_000).toISOString();

function workspace(
  name: string,
  used: number,
  changes: object = {},
  build: object = {},
): Workspace {
  return {
    id: name,
    name,
    owner_id: "1",
    owner_name: "ana",
    template_id: "t1",
    template_name: "box",
    organization_name: "crew",
    last_used_at: ago(used),
    latest_build: {
      status: "running",
      created_at: ago(2000),
      daily_cost: 24,
      job: { completed_at: ago(2000) },
      ...build,
    },
    ...changes,
  } as unknown as Workspace;
}

it("leaves out stopped workspaces and attached machines", () => {
  const all = [
    workspace("a", 1),
    workspace("b", 5),
    workspace("c", 9, {}, { status: "stopped" }),
    workspace("d", 9, {}, { has_external_agent: true }),
  ];
  expect(idleOf(all).map(({ workspace: { name } }) => name)).toEqual(["b", "a"]);
});

it.each([
  [10, 8, 2],
  [5, 8, 0],
  [2000, 8, 720],
])("unused for %i hours, stopped after %i: saves %i hours", (used, limit, expected) => {
  const [idle] = idleOf([workspace("a", used)]);
  expect(idle && savedHours(idle, limit, NOW)).toBe(expected);
});

it("counts from the build if the last use is older", () => {
  const [idle] = idleOf([workspace("a", 100, {}, { job: { completed_at: ago(10) } })]);
  expect(idle && savedHours(idle, 4, NOW)).toBe(6);
});

it("adds up by owner, the largest saving first", () => {
  const idle = idleOf([
    workspace("a", 10),
    workspace("b", 20, { owner_id: "2", owner_name: "ben" }),
    workspace("c", 1),
  ]);
  expect(totals(idle, "owner", 8, NOW)).toEqual([
    {
      id: "2",
      name: "ben",
      label: "ben",
      organization: "",
      filter: "owner:ben status:running",
      running: 1,
      stopped: 1,
      hours: 12,
      cost: 12,
    },
    {
      id: "1",
      name: "ana",
      label: "ana",
      organization: "",
      filter: "owner:ana status:running",
      running: 2,
      stopped: 1,
      hours: 2,
      cost: 2,
    },
  ]);
});

it("calls a template what the other pages call it, and finds it by its name", () => {
  const shown = { template_display_name: "Box with a view" };
  const [total] = totals(idleOf([workspace("a", 10, shown)]), "template", 8, NOW);
  expect([total?.label, total?.name, total?.filter]).toEqual([
    "Box with a view",
    "box",
    "template:box organization:crew status:running",
  ]);
});

it("keeps templates of one name apart", async () => {
  const other = { template_id: "t2", organization_name: "staff" };
  visit([{ path: "/idle", element: <IdlePage /> }], "/idle", {
    "GET /api/v2/workspaces": {
      workspaces: [workspace("a", 10), workspace("b", 5, other)],
      count: 2,
    },
  });
  const table = await screen.findByRole("table", { name: "Templates" });
  for (const organization of ["crew", "staff"]) {
    const row = within(table).getByRole("row", { name: new RegExp(`box in ${organization}`) });
    expect(within(row).getByRole("link", { name: "Schedule" })).toHaveAttribute(
      "href",
      `/templates/${organization}/box/settings/schedule`,
    );
  }
});

it("shows the saving of another rule", async () => {
  vi.useFakeTimers({ now: NOW, toFake: ["Date"] });
  visit([{ path: "/idle", element: <IdlePage /> }], "/idle", {
    "GET /api/v2/workspaces": { workspaces: [workspace("a", 10), workspace("b", 5)], count: 2 },
  });
  const saving = await screen.findByRole("status", { name: "Saving" });
  expect(saving).toHaveTextContent("1 workspace stopped, 2 hours saved (2.0 credits)");
  await userEvent.selectOptions(
    screen.getByLabelText("Stop after this time without use"),
    "4 hours",
  );
  expect(saving).toHaveTextContent("2 workspaces stopped, 7 hours saved");
  const owners = screen.getByRole("table", { name: "Owners" });
  expect(within(owners).getByRole("row", { name: /ana/ })).toHaveTextContent("227");
  vi.useRealTimers();
});
