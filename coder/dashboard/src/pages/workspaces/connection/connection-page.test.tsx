import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { Refusal, SignedIn, visit, type Answers } from "../../../test/world";
import { ConnectionPage } from "./ConnectionPage";

const { measured } = vi.hoisted(() => ({ measured: new Map<string, number | null>() }));
vi.mock("../../../features/proxy/latency", async (original) => ({
  ...(await original<object>()),
  measure: (address: string) => Promise.resolve(measured.get(address) ?? null),
}));

const AGENT = {
  id: "a",
  name: "main",
  parent_id: null,
  status: "connected",
  lifecycle_state: "ready",
  latency: { Local: { preferred: true, latency_ms: 3.4 } },
};
const REGIONS = [
  { id: "0", name: "primary", display_name: "Default", path_app_url: "https://far", healthy: true },
  { id: "1", name: "sydney", display_name: "Sydney", path_app_url: "https://near", healthy: true },
];
const reading = (name: string, value: string) => ({
  name,
  value,
  status: "good",
  at: "2026-01-01T00:00:00Z",
  age_seconds: 1,
});

function open(
  ms: Readonly<Record<string, number | null>>,
  agents: readonly object[] = [AGENT],
  answers: Answers = {},
) {
  measured.clear();
  for (const [address, value] of Object.entries(ms)) measured.set(address, value);
  const light = { status: "good", values: [] };
  return visit(
    [
      {
        element: <SignedIn bare />,
        children: [{ path: "/:owner/:workspace/connection", Component: ConnectionPage }],
      },
    ],
    "/@ana/dev/connection",
    {
      "GET /api/v2/users/me": {
        id: "u",
        username: "ana",
        email: "",
        organization_ids: ["o"],
        roles: [],
      },
      "GET /api/v2/users/ana/workspace/dev": {
        id: "w",
        name: "dev",
        owner_id: "u",
        owner_name: "ana",
        organization_id: "o",
        latest_build: { status: "running", resources: [{ agents }] },
      },
      "GET /api/v2/regions": { regions: REGIONS },
      "GET /api/v2/workspaceagents/a/connection": { disable_direct_connections: false },
      "GET /api/v2/workspaceagents/a/lights": {
        host: light,
        agent: light,
        path: {
          status: "good",
          values: [reading("way", "1 direct"), reading("round trip", "12 ms to the server")],
        },
      },
      ...answers,
    },
  );
}
const ORIGIN = window.location.origin;

it("adds up the path and names a nearer proxy", async () => {
  open({ [ORIGIN]: 200, "https://near": 20 });
  expect(await screen.findByText(/A round trip takes about/)).toHaveTextContent(
    "A round trip takes about 212 ms.",
  );
  expect(screen.getByRole("listitem", { name: "Browser to server" })).toHaveTextContent("200 ms");
  expect(screen.getByRole("listitem", { name: "Server to agent" })).toHaveTextContent("12 ms");
  const advice = within(screen.getByRole("region", { name: "What to do" }));
  expect(advice.getByText(/Sydney answers you in 20 ms/)).toBeVisible();
});

it("offers commands where nothing stands out", async () => {
  open({ [ORIGIN]: 10, "https://near": 20 });
  expect(await screen.findByText("Nothing stands out")).toBeVisible();
  expect(screen.getByTestId("ping-command")).toHaveTextContent("coder ping dev");
  expect(screen.getByTestId("speedtest-command")).toHaveTextContent("coder speedtest dev");
});

it("says that a part has not been measured", async () => {
  open({ [ORIGIN]: null });
  expect(await screen.findByText("A part of the path has not been measured yet.")).toBeVisible();
  expect(screen.getByRole("listitem", { name: "Browser to server" })).toHaveTextContent("Unknown");
});

it("has nothing to measure without an agent", async () => {
  open({}, []);
  expect(await screen.findByRole("heading", { name: "This workspace has no agent" })).toBeVisible();
});

const SPEED = "/api/v2/workspaceagents/a/speedtest";

it("measures the speed and names the narrow part", async () => {
  open({ [ORIGIN]: 10 }, [AGENT], {
    [`GET ${SPEED}/payload`]: new Uint8Array(1),
    [`POST ${SPEED}/payload`]: {},
    [`POST ${SPEED}`]: { mbits: 0.01, via: "relay" },
  });
  await userEvent.click(await screen.findByRole("button", { name: "Run speed test" }));
  const region = within(screen.getByRole("region", { name: "Speed test" }));
  expect(await region.findAllByText("0.0 Mbit/s")).toHaveLength(2);
  expect(region.getByText(/through its own relay/)).toBeVisible();
  const advice = within(screen.getByRole("region", { name: "What to do" }));
  expect(advice.getByText(/The machine’s line is the narrow part/)).toBeVisible();
  expect(advice.getByText(/Allow outgoing UDP on the machine’s network/)).toBeVisible();
});

it("says why the speed test failed", async () => {
  open({ [ORIGIN]: 10 }, [AGENT], {
    [`GET ${SPEED}/payload`]: new Uint8Array(1),
    [`POST ${SPEED}/payload`]: {},
    [`POST ${SPEED}`]: new Refusal(409, "Another speed test is running."),
  });
  await userEvent.click(await screen.findByRole("button", { name: "Run speed test" }));
  expect(await screen.findByText("Another speed test is running.")).toBeVisible();
  expect(screen.getByText("The speed test failed: Agent to server")).toBeVisible();
});

it("offers no speed test of an agent that is away", async () => {
  open({ [ORIGIN]: 10 }, [{ ...AGENT, status: "disconnected" }]);
  expect(await screen.findByText("The agent is not connected")).toBeVisible();
  expect(screen.queryByRole("button", { name: "Run speed test" })).toBeNull();
});
