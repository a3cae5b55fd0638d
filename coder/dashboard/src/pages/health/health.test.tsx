import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { visit, type Answers } from "../../test/world";
import { FindingsPage } from "./FindingsPage";
import { HealthLayout } from "./HealthLayout";
import { DatabasePage } from "./PartPages";

const part = (more: object = {}) => ({
  severity: "ok",
  warnings: [],
  dismissed: false,
  error: null,
  healthy: true,
  ...more,
});
const slow = part({
  severity: "warning",
  warnings: [{ code: "EDB02", message: "Median ping is 40 ms" }],
  latency: "40ms",
  threshold_ms: 15,
  reachable: true,
});
const report = (database: object = slow) => ({
  time: "2026-01-01T00:00:00Z",
  healthy: true,
  severity: "warning",
  access_url: part(),
  database,
  websocket: part(),
  derp: part({ regions: {}, netcheck_logs: [] }),
  workspace_proxy: part({ workspace_proxies: { regions: [] } }),
  provisioner_daemons: part({ items: [] }),
});
const ROUTES = [
  {
    path: "/health",
    Component: HealthLayout,
    children: [
      { index: true, Component: FindingsPage },
      { path: "database", Component: DatabasePage },
    ],
  },
];
const open = (address: string, answers: Answers = {}) =>
  visit(ROUTES, address, {
    "GET /api/v2/debug/health": report(),
    "GET /api/v2/debug/health/settings": { dismissed_healthchecks: [] },
    ...answers,
  });

it("shows problems with remedies and links", async () => {
  open("/health");
  expect(await screen.findByText(/Median ping is 40 ms/)).toBeVisible();
  expect(screen.getByText(/Move it closer to the server/)).toBeVisible();
  await userEvent.click(screen.getByRole("link", { name: /See details/ }));
  expect(await screen.findByRole("heading", { level: 1, name: "Database" })).toBeVisible();
});

it("dismisses the warnings of one check only", async () => {
  const page = open("/health/database", {
    "GET /api/v2/debug/health/settings": { dismissed_healthchecks: ["DERP"] },
    "PUT /api/v2/debug/health/settings": {},
  });
  await userEvent.click(await screen.findByRole("button", { name: "Dismiss warnings" }));
  await waitFor(() =>
    expect(page.sent).toEqual([
      {
        method: "PUT",
        path: "/api/v2/debug/health/settings",
        body: { dismissed_healthchecks: ["DERP", "Database"] },
      },
    ]),
  );
});

it("checks again on request", async () => {
  const answers = [report(), report(part({ latency: "1ms", reachable: true, threshold_ms: 15 }))];
  open("/health", {
    "GET /api/v2/debug/health": () => (answers.length > 1 ? answers.shift() : answers[0]),
  });
  await screen.findByText(/Median ping is 40 ms/);
  await userEvent.click(screen.getByRole("button", { name: "Check again" }));
  expect(await screen.findByText("Everything is healthy")).toBeVisible();
});

it("shows only a notice without permission", async () => {
  const page = open("/health", {
    "POST /api/v2/authcheck": (body: { checks: object }) =>
      Object.fromEntries(Object.keys(body.checks).map((name) => [name, false])),
  });
  expect(
    await screen.findByText(/You need permission to view the deployment’s health/),
  ).toBeVisible();
  expect(page.requests).not.toContain("GET /api/v2/debug/health");
});
