import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { SignedInUser } from "../../../features/session/useMe";
import type { User, Workspace, WorkspaceAgent } from "../../../api/types";
import { Refusal, visit, type Answers } from "../../../test/world";
import { PortsButton } from "./Ports";

const workspace = {
  id: "w",
  name: "dev",
  owner_id: "u",
  owner_name: "ana",
  template_id: "t",
  latest_build: { resources: [{ agents: [{ id: "a", name: "main", parent_id: null }] }] },
} as Workspace;
const ports = (viewer = "u") => (
  <SignedInUser value={{ id: viewer } as User}>
    <PortsButton workspace={workspace} agent={agent} />
  </SignedInUser>
);
const agent = { id: "a", name: "main" } as WorkspaceAgent;

it.each([
  ["u", "dev"],
  ["other", "ana/dev"],
])("shows %s the port-forward command for %s without a wildcard host", async (viewer, target) => {
  visit([{ path: "/", element: ports(viewer) }], "/", {
    "GET /api/v2/workspaceagents/a/listening-ports": {
      ports: [{ port: 5173, process_name: "node" }],
    },
    "GET /api/v2/workspaces/w/port-share": { shares: [] },
    "GET /api/v2/templates/t": { max_port_share_level: "public" },
  });
  await userEvent.click(await screen.findByRole("button", { name: /Open ports/ }));
  expect(await screen.findByText(`coder port-forward ${target} --tcp 5173`)).toBeVisible();
  expect(screen.queryByLabelText("Protocol of the listening ports")).toBeNull();
});

const shown = (shares: object[], more: Answers = {}) =>
  visit([{ path: "/", element: ports() }], "/", {
    "GET /api/v2/workspaceagents/a/listening-ports": { ports: [] },
    "GET /api/v2/workspaces/w/port-share": { shares },
    "GET /api/v2/templates/t": { max_port_share_level: "public" },
    "GET /api/v2/applications/host": { host: "*.apps.test" },
    "POST /api/v2/workspaces/w/port-share": {},
    ...more,
  });
const last = (page: ReturnType<typeof visit>) => page.sent.at(-1)?.body as Record<string, unknown>;

it("searches many ports and copies the command of one", async () => {
  const user = userEvent.setup(); // with a clipboard of its own
  shown([], {
    "GET /api/v2/workspaceagents/a/listening-ports": {
      ports: Array.from({ length: 12 }, (_, index) => ({
        port: 8000 + index,
        process_name: `process-${index}`,
      })),
    },
  });
  await user.click(await screen.findByRole("button", { name: /Open ports/ }));
  fireEvent.change(await screen.findByLabelText("Search ports"), {
    target: { value: "process-7" },
  });
  expect(screen.queryByText("process-1")).toBeNull();
  await user.click(
    screen.getByRole("button", { name: "Copy the command that forwards port 8007" }),
  );
  await waitFor(async () =>
    expect(await navigator.clipboard.readText()).toBe("coder port-forward dev --tcp 8007"),
  );
});

it("shares a port that is not listening yet", async () => {
  const page = shown([]);
  await userEvent.click(await screen.findByRole("button", { name: /Open ports/ }));
  const form = within(await screen.findByRole("form", { name: "Share a port" }));
  await userEvent.type(form.getByLabelText("Port to share"), "4321");
  await userEvent.selectOptions(form.getByLabelText("Protocol"), "HTTPS");
  await userEvent.selectOptions(form.getByLabelText("Sharing level"), "Public");
  const before = Date.now();
  await userEvent.selectOptions(form.getByLabelText("Expires"), "In 1 hour");
  await userEvent.click(form.getByRole("button", { name: "Share port" }));
  await waitFor(() => expect(form.getByLabelText("Port to share")).toHaveValue(null));
  expect(last(page)).toMatchObject({
    agent_name: "main",
    port: 4321,
    protocol: "https",
    share_level: "public",
  });
  const end = Date.parse(String(last(page)["expires_at"]));
  expect(end).toBeGreaterThanOrEqual(before + 3_600_000);
  expect(end).toBeLessThanOrEqual(Date.now() + 3_600_000);
  await userEvent.type(form.getByLabelText("Port to share"), "4322");
  await userEvent.selectOptions(form.getByLabelText("Expires"), "Never");
  await userEvent.click(form.getByRole("button", { name: "Share port" }));
  await waitFor(() => expect(last(page)).toMatchObject({ port: 4322, expires_at: null }));
});

it("keeps the number and shows the field's error", async () => {
  shown([], {
    "POST /api/v2/workspaces/w/port-share": new Refusal(
      400,
      "A workspace shares at most 100 ports.",
    ),
  });
  await userEvent.click(await screen.findByRole("button", { name: /Open ports/ }));
  await userEvent.type(await screen.findByLabelText("Port to share"), "4321");
  await userEvent.click(screen.getByRole("button", { name: "Share port" }));
  expect(await screen.findByText("A workspace shares at most 100 ports.")).toBeVisible();
  expect(screen.getByLabelText("Port to share")).toHaveValue(4321);
});

it("shows and changes a share's expiry", async () => {
  const page = shown([
    {
      agent_name: "main",
      port: 8080,
      share_level: "public",
      protocol: "http",
      expires_at: new Date(Date.now() + 2 * 3_600_000 + 60_000).toISOString(),
    },
  ]);
  await userEvent.click(await screen.findByRole("button", { name: /Open ports/ }));
  expect(await screen.findByRole("option", { name: "Expires in 2 hours" })).toBeInTheDocument();
  await userEvent.selectOptions(
    screen.getByLabelText("Sharing level of port 8080"),
    "Organization",
  );
  await waitFor(() =>
    expect(last(page)).toEqual({
      agent_name: "main",
      port: 8080,
      share_level: "organization",
      protocol: "http",
    }),
  );
  await userEvent.selectOptions(screen.getByLabelText("Expiry of the share of port 8080"), "Never");
  await waitFor(() =>
    expect(last(page)).toMatchObject({ port: 8080, share_level: "public", expires_at: null }),
  );
});

it("shares a listening port without expiry", async () => {
  const page = shown([], {
    "GET /api/v2/workspaceagents/a/listening-ports": {
      ports: [{ port: 5173, process_name: "node" }],
    },
  });
  await userEvent.click(await screen.findByRole("button", { name: /Open ports/ }));
  await userEvent.click(await screen.findByRole("button", { name: "Share" }));
  await waitFor(() => expect(last(page)).toMatchObject({ port: 5173, expires_at: null }));
});

it("builds a second change on the first, sent in order", async () => {
  let answer = (): void => undefined;
  const first = new Promise<object>((done) => {
    answer = () => done({});
  });
  const page = shown(
    [{ agent_name: "main", port: 8080, share_level: "public", protocol: "http", expires_at: null }],
    { "POST /api/v2/workspaces/w/port-share": () => first },
  );
  await userEvent.click(await screen.findByRole("button", { name: /Open ports/ }));
  await userEvent.selectOptions(
    await screen.findByLabelText("Sharing level of port 8080"),
    "Organization",
  );
  expect(screen.getByLabelText("Sharing level of port 8080")).toHaveDisplayValue("Organization");
  await userEvent.selectOptions(screen.getByLabelText("Protocol of port 8080"), "HTTPS");
  expect(page.sent).toHaveLength(1);
  await act(async () => answer());
  await waitFor(() => expect(page.sent).toHaveLength(2));
  expect(last(page)).toEqual({
    agent_name: "main",
    port: 8080,
    share_level: "organization",
    protocol: "https",
  });
});

it("rolls back a rejected level", async () => {
  shown(
    [
      {
        agent_name: "main",
        port: 8080,
        share_level: "organization",
        protocol: "http",
        expires_at: null,
      },
    ],
    { "POST /api/v2/workspaces/w/port-share": new Refusal(400, "Not in this template.") },
  );
  await userEvent.click(await screen.findByRole("button", { name: /Open ports/ }));
  await userEvent.selectOptions(
    await screen.findByLabelText("Sharing level of port 8080"),
    "Public",
  );
  await waitFor(() =>
    expect(screen.getByLabelText("Sharing level of port 8080")).toHaveDisplayValue("Organization"),
  );
});

it("shows a current level that is no longer allowed", async () => {
  shown(
    [{ agent_name: "main", port: 8080, share_level: "public", protocol: "http", expires_at: null }],
    { "GET /api/v2/templates/t": { max_port_share_level: "organization" } },
  );
  await userEvent.click(await screen.findByRole("button", { name: /Open ports/ }));
  expect(await screen.findByLabelText("Sharing level of port 8080")).toHaveDisplayValue("Public");
});

it("claims no missing shares before they are known", async () => {
  shown([], { "GET /api/v2/workspaces/w/port-share": new Refusal(500, "The database is gone.") });
  await userEvent.click(await screen.findByRole("button", { name: /Open ports/ }));
  expect(await screen.findByText("The database is gone.")).toBeVisible();
  expect(screen.queryByText("No ports of this agent are shared.")).toBeNull();
});
