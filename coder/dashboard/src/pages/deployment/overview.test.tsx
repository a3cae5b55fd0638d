import { screen, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";

import { Refusal, visit } from "../../test/world";
import { OverviewPage } from "./OverviewPage";

const answers = (check: object) => ({ "GET /api/v2/updatecheck": () => check });

it("names a newer release and its notes", async () => {
  const check = { current: false, version: "v2.36.0", url: "https://example.com/notes" };
  visit([{ path: "/", element: <OverviewPage /> }], "/", answers(check));
  expect(await screen.findByText("Coder v2.36.0 is available")).toBeVisible();
  expect(screen.getByRole("link", { name: "release notes" })).toHaveAttribute(
    "href",
    "https://example.com/notes",
  );
});

it("links no notes that the list does not name", async () => {
  const check = { current: false, version: "v2.36.0", url: "" };
  visit([{ path: "/", element: <OverviewPage /> }], "/", answers(check));
  expect(await screen.findByText("Coder v2.36.0 is available")).toBeVisible();
  expect(screen.queryByRole("link", { name: "release notes" })).toBeNull();
});

it("counts machines that were never attached apart", async () => {
  const states = { pending: 0, building: 0, running: 30, failed: 0, stopped: 0 };
  visit([{ path: "/", element: <OverviewPage /> }], "/", {
    "GET /api/v2/deployment/stats": {
      collected_at: "2026-01-01T00:10:00Z",
      workspaces: { ...states, connection_latency_ms: { P50: -1, P95: -1 } },
      session_count: { vscode: 0, ssh: 0, jetbrains: 0, reconnecting_pty: 0 },
    },
    "GET /api/v2/workspaces": { workspaces: [], count: 4 },
  });
  const figure = (name: string) => screen.getByText(name).parentElement;
  await waitFor(() => expect(figure("Not attached")).toHaveTextContent("4"));
  expect(figure("Running")).toHaveTextContent("26");
});

it("shows a dash for machines that cannot be counted", async () => {
  const states = { pending: 0, building: 0, running: 30, failed: 0, stopped: 0 };
  visit([{ path: "/", element: <OverviewPage /> }], "/", {
    "GET /api/v2/deployment/stats": {
      collected_at: "2026-01-01T00:10:00Z",
      workspaces: { ...states, connection_latency_ms: { P50: -1, P95: -1 } },
      session_count: { vscode: 0, ssh: 0, jetbrains: 0, reconnecting_pty: 0 },
    },
    "GET /api/v2/workspaces": new Refusal(500, "The database is gone."),
  });
  const figure = (name: string) => screen.getByText(name).parentElement;
  await waitFor(() => expect(figure("Not attached")).toHaveTextContent("Not attached-"));
  expect(figure("Running")).toHaveTextContent("Running-");
});

it("says nothing about the server's own release", async () => {
  const check = { current: true, version: "v2.34.0", url: "https://example.com" };
  visit([{ path: "/", element: <OverviewPage /> }], "/", answers(check));
  expect(await screen.findByText("Experiments")).toBeVisible();
  expect(screen.queryByText(/is available/)).toBeNull();
});
