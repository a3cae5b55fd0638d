import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { Refusal, visit } from "../../test/world";
import { byteSize } from "../../lib/bytes";
import { DeploymentBar } from "./DeploymentBar";

const stats = {
  aggregated_from: "2026-01-01T00:00:00Z",
  collected_at: "2026-01-01T00:10:00Z",
  next_update_at: "2026-01-01T00:11:00Z",
  workspaces: {
    pending: 1,
    building: 2,
    running: 30,
    failed: 4,
    stopped: 5,
    connection_latency_ms: { P50: 12.4, P95: 90 },
    rx_bytes: 1536,
    tx_bytes: 5 * 1024 ** 3,
  },
  session_count: { vscode: 6, ssh: 7, jetbrains: 8, reconnecting_pty: 9 },
};
const open = (answers: object = {}) =>
  visit([{ path: "/", Component: DeploymentBar }], "/", {
    "GET /api/v2/deployment/stats": stats,
    "GET /api/v2/debug/health": { healthy: true },
    "GET /api/v2/workspaces": { workspaces: [], count: 0 },
    ...answers,
  });
const bar = async () =>
  within(await screen.findByRole("complementary", { name: "Deployment statistics" }));

/** The text of each item of a list of figures. */
function itemTexts(list: HTMLElement): (string | null)[] {
  return within(list)
    .getAllByRole("listitem")
    .map((item) => item.textContent);
}

it("shows workspaces, traffic and sessions, with links", async () => {
  open();
  const shown = await bar();
  expect(itemTexts(shown.getByRole("list", { name: "Workspaces" }))).toEqual([
    "Pending: 1",
    "Building: 2",
    "Running: 30",
    "Stopped: 5",
    "Failed: 4",
  ]);
  expect(itemTexts(shown.getByRole("list", { name: "Transmission" }))).toEqual([
    "Received: 1.5 KiB",
    "Sent: 5.0 GiB",
    "Median latency: 12 ms",
  ]);
  expect(itemTexts(shown.getByRole("list", { name: "Connections" }))).toEqual([
    "VS Code: 6",
    "JetBrains: 8",
    "SSH: 7",
    "Terminal: 9",
  ]);
  expect(shown.getByRole("link", { name: "Failed: 4" })).toHaveAttribute(
    "href",
    "/workspaces?filter=status%3Afailed",
  );
  expect(shown.queryByRole("link", { name: "Unhealthy" })).toBeNull();
});

it("hides zero figures except the common ones", async () => {
  open({
    "GET /api/v2/deployment/stats": {
      ...stats,
      workspaces: {
        ...stats.workspaces,
        pending: 0,
        building: 0,
        running: 0,
        failed: 0,
        stopped: 0,
      },
      session_count: { vscode: 0, ssh: 0, jetbrains: 0, reconnecting_pty: 0 },
    },
  });
  const shown = await bar();
  expect(itemTexts(shown.getByRole("list", { name: "Workspaces" }))).toEqual([
    "Running: 0",
    "Stopped: 0",
  ]);
  expect(itemTexts(shown.getByRole("list", { name: "Connections" }))).toEqual(["none"]);
});

it("says what the running figure includes without permission to list all workspaces", async () => {
  const page = open({
    "POST /api/v2/authcheck": ({ checks }: { checks: object }) =>
      Object.fromEntries(Object.keys(checks).map((name) => [name, name !== "viewAllWorkspaces"])),
  });
  const shown = await bar();
  expect(itemTexts(shown.getByRole("list", { name: "Workspaces" }))).toContain(
    "Running or not attached: 30",
  );
  expect(page.requests).not.toContain("GET /api/v2/workspaces");
});

it("refetches on request", async () => {
  const page = open();
  await userEvent.click((await bar()).getByRole("button", { name: "Refresh statistics" }));
  await waitFor(() =>
    expect(
      page.requests.filter((request) => request === "GET /api/v2/deployment/stats"),
    ).toHaveLength(2),
  );
});

it("shows unhealthy state and unknown latency", async () => {
  open({
    "GET /api/v2/debug/health": { healthy: false },
    "GET /api/v2/deployment/stats": {
      ...stats,
      workspaces: { ...stats.workspaces, connection_latency_ms: { P50: -1, P95: -1 } },
    },
  });
  const shown = await bar();
  expect(await shown.findByRole("link", { name: "Unhealthy" })).toHaveAttribute("href", "/health");
  expect(itemTexts(shown.getByRole("list", { name: "Transmission" }))[2]).toBe("Median latency: -");
});

it("shows its figures at once, and a late warning of the health beside them", async () => {
  const pending: (() => void)[] = [];
  const later = (answer: object) => () =>
    new Promise((resolve) => pending.push(() => resolve(answer)));
  const page = open({
    "GET /api/v2/workspaces": later({ workspaces: [], count: 12 }),
    "GET /api/v2/debug/health": later({ healthy: false }),
  });
  await waitFor(() => expect(pending).toHaveLength(2));
  await waitFor(() => expect(page.fetching()).toBe(2)); // only these
  expect(screen.queryByRole("complementary")).toBeNull();
  const [count, health] =
    page.requests.indexOf("GET /api/v2/workspaces") <
    page.requests.indexOf("GET /api/v2/debug/health")
      ? pending
      : [...pending].reverse();
  act(() => count?.());
  const shown = await bar();
  expect(itemTexts(shown.getByRole("list", { name: "Workspaces" }))).toContain("Not attached: 12");
  const figures = shown.getByRole("list", { name: "Workspaces" }).closest("aside > div > *");
  const before = figures?.innerHTML;
  act(() => health?.());
  const warning = await shown.findByRole("link", { name: "Unhealthy" });
  expect(figures).not.toContainElement(warning);
  expect(figures?.innerHTML).toBe(before);
});

it("shows what it knows if machines cannot be counted", async () => {
  open({ "GET /api/v2/workspaces": new Refusal(500, "The database is gone.") });
  const shown = await bar();
  const states = itemTexts(shown.getByRole("list", { name: "Workspaces" }));
  expect(states).toContain("Running: -");
  expect(states).toContain("Stopped: 5");
});

it("is hidden without permission for statistics", async () => {
  const page = open({
    "POST /api/v2/authcheck": (body: { checks: object }) =>
      Object.fromEntries(Object.keys(body.checks).map((name) => [name, false])),
  });
  await waitFor(() => expect(page.requests).toContain("POST /api/v2/authcheck"));
  await act(async () => undefined);
  expect(page.requests).not.toContain("GET /api/v2/deployment/stats");
  expect(screen.queryByRole("complementary")).toBeNull();
});

it.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1.0 KiB"],
  [150 * 1024, "150 KiB"],
  [2 ** 60, "1024 PiB"],
])("formats %d bytes as %s", (count, text) => {
  expect(byteSize(count)).toBe(text);
});

it("counts machines that were never attached apart from running workspaces", async () => {
  open({ "GET /api/v2/workspaces": { workspaces: [], count: 12 } });
  const shown = await bar();
  expect(await shown.findByText("Not attached: 12")).toBeVisible();
  expect(shown.getByText("Running: 18")).toBeVisible();
});
