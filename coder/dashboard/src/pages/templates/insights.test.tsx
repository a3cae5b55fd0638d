import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Outlet } from "react-router";
import { expect, it } from "vitest";

import { Refusal, visit } from "../../test/world";
import { InsightsPage } from "./InsightsPage";
import { periodOf, rangeOf } from "./insights-range";

const NOW = Date.parse("2026-03-10T15:42:00Z");
const parse = (address: string) => periodOf(new URLSearchParams(address), NOW);

it.each([
  ["", "7", "2026-03-04", "2026-03-10"],
  ["days=30", "30", "2026-02-09", "2026-03-10"],
  ["days=84", "84", "2025-12-17", "2026-03-10"],
  ["days=12", "7", "2026-03-04", "2026-03-10"],
  ["from=2026-01-01&to=2026-01-31", "custom", "2026-01-01", "2026-01-31"],
])("parses %j as the period %s, from %s to %s", (address, choice, from, to) => {
  expect(parse(address)).toEqual({ choice, from, to, problem: undefined });
});

it.each([
  ["from=2026-01-31&to=2026-01-01", "The start date is after the end date."],
  ["from=2026-03-01&to=2026-03-11", "The end date is in the future."],
  ["from=2026-03-01", "Choose a start and an end date."],
  ["from=2026-02-30&to=2026-03-01", "Choose a start and an end date."],
  ["from=%3Cimg%3E&to=2026-03-01", "Choose a start and an end date."],
  ["from=2024-01-01&to=2026-03-01", "Choose at most 366 days."],
])("explains why %j is invalid", (address, problem) => {
  expect(parse(address).problem).toBe(problem);
});

it.each([
  [{ from: "2026-03-04", to: "2026-03-10" }, "2026-03-04T00:00:00Z", "2026-03-10T15:00:00Z", "day"],
  [{ from: "2026-01-01", to: "2026-01-01" }, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "day"],
  [
    { from: "2025-12-01", to: "2026-03-01" },
    "2025-12-01T00:00:00Z",
    "2026-03-02T00:00:00Z",
    "week",
  ],
])("queries %j as whole days, none in the future", (days, start_time, end_time, interval) => {
  expect(rangeOf(days, NOW)).toEqual({ start_time, end_time, interval });
});

const people = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    user_id: `u${index}`,
    username: `person-${index}`,
    avatar_url: "",
    seconds: 1000 - index,
    latency_ms: { p50: 20, p95: 40 },
  }));
const show = (address: string, count = 12) =>
  visit(
    [
      {
        element: <Outlet context={{ template: { id: "t", name: "box" }, may: {} }} />,
        children: [{ path: "/", element: <InsightsPage /> }],
      },
    ],
    address,
    {
      "GET /api/v2/insights/templates": {
        report: {
          active_users: 0,
          apps_usage: [],
          parameters_usage: [
            {
              name: "cpu",
              display_name: "CPU",
              values: Array.from({ length: 7 }, (_, index) => ({
                value: `${index} cores`,
                count: 9 - index,
              })),
            },
          ],
        },
        interval_reports: [],
      },
      "GET /api/v2/insights/user-latency": { report: { users: [] } },
      "GET /api/v2/insights/user-activity": { report: { users: people(count) } },
    },
  );

it("expands a long list", async () => {
  show("/");
  const section = within(await screen.findByRole("region", { name: "Activity by user" }));
  expect(await section.findByText("person-9")).toBeVisible();
  expect(section.queryByText("person-10")).toBeNull();
  await userEvent.click(section.getByRole("button", { name: "Show all 12" }));
  expect(section.getByText("person-11")).toBeVisible();
  const parameters = within(screen.getByRole("region", { name: "Parameters" }));
  await userEvent.click(parameters.getByRole("button", { name: "Show all 7" }));
  expect(parameters.getByText("6 cores")).toBeVisible();
});

it("keeps a custom period in the address, if valid", async () => {
  const page = show("/");
  await screen.findByText("person-1");
  await userEvent.selectOptions(screen.getByLabelText("Period"), "Custom");
  await waitFor(() => expect(page.at()).toMatch(/^\/\?from=.+&to=.+$/));
  const first = screen.getByLabelText("From");
  await userEvent.clear(first);
  expect(await screen.findByRole("alert")).toHaveTextContent("Choose a start and an end date.");
  const requestsBefore = page.requests.length;
  await userEvent.type(first, "2026-01-05");
  await waitFor(() => expect(page.at()).toContain("from=2026-01-05"));
  await waitFor(() => expect(page.requests.length).toBeGreaterThan(requestsBefore));
  expect(screen.queryByRole("alert")).toBeNull();
});

it("reports no activity only if data was counted", async () => {
  visit(
    [
      {
        element: <Outlet context={{ template: { id: "t", name: "box" }, may: {} }} />,
        children: [{ path: "/", element: <InsightsPage /> }],
      },
    ],
    "/?from=2026-03-10&to=2026-03-01",
    {},
  );
  expect(await screen.findByRole("alert")).toHaveTextContent(
    "The start date is after the end date.",
  );
  expect(screen.queryByText(/in this period/)).toBeNull();
  expect(screen.queryByLabelText("Loading")).toBeNull();
});

it("reports a failed query as no data", async () => {
  visit(
    [
      {
        element: <Outlet context={{ template: { id: "t", name: "box" }, may: {} }} />,
        children: [{ path: "/", element: <InsightsPage /> }],
      },
    ],
    "/",
    {
      "GET /api/v2/insights/templates": {
        report: { active_users: 0, apps_usage: [], parameters_usage: [] },
        interval_reports: [],
      },
      "GET /api/v2/insights/user-latency": new Refusal(500, "The database is gone."),
      "GET /api/v2/insights/user-activity": { report: { users: [] } },
    },
  );
  expect(await screen.findByText("The database is gone.")).toBeVisible();
  expect(
    within(screen.getByRole("region", { name: "Latency by user" })).getByText(
      "No data for this period.",
    ),
  ).toBeVisible();
  expect(
    within(screen.getByRole("region", { name: "Activity by user" })).getByText(
      "No activity in this period.",
    ),
  ).toBeVisible();
});
