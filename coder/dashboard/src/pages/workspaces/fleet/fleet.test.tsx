import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import type { AgentLights } from "../../../api/types";
import { Refusal, SignedIn, visit, type Answers } from "../../../test/world";
import {
  attachScript,
  concerns,
  machineNames,
  readFirst,
  readingOf,
  wayOf,
  type Machine,
} from "./fleet";
import { COLUMNS } from "./fleet-columns";
import { FleetPage } from "./FleetPage";

const light = (name: string, value: string, status = "good") => ({
  status,
  values: [{ name, value, status, at: null, age_seconds: null }],
});
const lights = (way: string, disk: string, status = "good") =>
  ({
    host: light("disk", disk, status),
    agent: light("version", "v2.34.0"),
    path: light("way", way, way === "" ? "unknown" : "good"),
  }) as unknown as AgentLights;

describe("readings", () => {
  it.each([
    ["2 direct", "direct"],
    ["1 relayed, 2 direct", "relayed"],
    ["no peers connected", "idle"],
    ["", "unknown"],
  ])("way %j is %s", (way, expected) => expect(wayOf(lights(way, "")) as string).toBe(expected));

  it("says unknown for a missing reading", () => {
    expect(readingOf(null, "host", "disk")).toEqual({ text: "-", status: "unknown" });
    expect(readingOf(lights("", ""), "host", "disk").text).toBe("-");
    expect(readingOf(lights("", "40 %"), "host", "clock").status).toBe("unknown");
  });

  it.each([
    ["connected", lights("1 direct", "40 %"), []],
    ["connected", lights("", "97 %", "bad"), ["disk 97 %"]],
    [
      "connected",
      { ...lights("", ""), path: light("way", "1 relayed", "warning") } as unknown as AgentLights,
      ["1 relayed"],
    ],
    ["timeout", null, ["not attached"]],
    ["disconnected", null, ["disconnected"]],
    ["connected", null, []],
  ])("concerns of a %s machine", (status, read, expected) =>
    expect(concerns({ agent: { status }, lights: read } as unknown as Machine)).toEqual(expected),
  );

  it("names each command of a script", () =>
    expect(attachScript([["one", "curl 1"]])).toBe("# one\ncurl 1\n"));
});

const machine = (name: string, status: string) => ({
  id: name,
  name,
  owner_id: "me",
  owner_name: "ana",
  organization_id: "o",
  latest_build: {
    status: "running",
    has_external_agent: true,
    resources: [
      {
        agents: [
          {
            id: `agent-${name}`,
            parent_id: null,
            name: "main",
            status,
            operating_system: "linux",
            architecture: "amd64",
            version: "",
          },
        ],
      },
    ],
  },
});

const opened = (answers: Answers) =>
  visit(
    [{ element: <SignedIn bare />, children: [{ path: "/fleet", element: <FleetPage /> }] }],
    "/fleet",
    {
      "GET /api/v2/users/me": { id: "me", username: "ana", roles: [], organization_ids: ["o"] },
      ...answers,
    },
  );
const rotate = (name: string) => `POST /api/v2/workspaces/${name}/external-agent/main/rotate-token`;

it("filters machines that need attention and rotates their tokens", async () => {
  const page = opened({
    "GET /api/v2/workspaces": {
      workspaces: [machine("fine", "connected"), machine("gone", "disconnected")],
      count: 2,
    },
    "GET /api/v2/workspaceagents/agent-fine/lights": lights("1 direct", "40 %"),
    [rotate("gone")]: { command: "curl new", agent_token: "t" },
  });
  const fine = await screen.findByRole("row", { name: /fine/ });
  await waitFor(() => expect(fine).toHaveTextContent("Direct"));
  expect(fine).toHaveTextContent("40 %");
  expect(screen.getByRole("row", { name: /gone/ })).toHaveTextContent("Unknown");
  await userEvent.click(screen.getByLabelText("Needs attention"));
  await waitFor(() => expect(screen.queryByRole("row", { name: /fine/ })).toBeNull());
  await userEvent.click(await screen.findByLabelText("Select gone"));
  const bar = screen.getByRole("group", { name: "Selected machines" });
  await waitFor(() =>
    expect(within(bar).getByRole("button", { name: "Rotate tokens…" })).toBeEnabled(),
  );
  await userEvent.click(within(bar).getByRole("button", { name: "Rotate tokens…" }));
  await userEvent.click(await screen.findByTestId("confirm-button"));
  await waitFor(() =>
    expect(page.sent.map((request) => request.path)).toEqual([
      "/api/v2/workspaces/gone/external-agent/main/rotate-token",
    ]),
  );
});

it("looks for attention on all pages", async () => {
  const all = Array.from({ length: 60 }, (_, index) =>
    machine(`box${index}`, index === 59 ? "disconnected" : "connected"),
  );
  opened({
    "GET /api/v2/workspaces": (_: unknown, query: URLSearchParams) => {
      const offset = Number(query.get("offset") ?? 0);
      return { workspaces: all.slice(offset, offset + Number(query.get("limit"))), count: 60 };
    },
  });
  await screen.findByRole("row", { name: /box0/ });
  expect(screen.queryByRole("row", { name: /box59/ })).toBeNull();
  await userEvent.click(screen.getByLabelText("Needs attention"));
  expect(await screen.findByRole("row", { name: /box59/ })).toBeVisible();
  expect(
    await screen.findByText("60 machines checked by connection only, without readings."),
  ).toBeVisible();
});

it("requests the readings of connected machines first", () => {
  const of = (id: string, status: string) => ({ agent: { id, status } }) as unknown as Machine;
  const read = readFirst([of("a", "timeout"), of("b", "connected"), of("c", "disconnected")], 2);
  expect(read.map(({ agent }) => agent.id)).toEqual(["b", "a"]);
});

it("shows the new commands beside the failures until they are closed", async () => {
  let asked = 0;
  const all = ["one", "two", "gone"].map((name) => machine(name, "disconnected"));
  const page = opened({
    "GET /api/v2/workspaces": () => {
      const workspaces = asked++ === 0 ? all : [];
      return { workspaces, count: workspaces.length };
    },
    [rotate("one")]: { command: "curl one", agent_token: "t" },
    [rotate("gone")]: new Refusal(409, "It has another owner now."),
    [rotate("two")]: { command: "curl two", agent_token: "t" },
  });
  await userEvent.click(await screen.findByLabelText("Select all"));
  const bar = screen.getByRole("group", { name: "Selected machines" });
  const button = within(bar).getByRole("button", { name: "Rotate tokens…" });
  await waitFor(() => expect(button).toBeEnabled());
  await userEvent.click(button);
  await userEvent.click(await screen.findByTestId("confirm-button"));
  const dialog = await screen.findByRole("dialog", { name: "New attach commands" });
  await waitFor(() => expect(screen.queryByText("one", { selector: "td *" })).toBeNull()); // it left the list
  expect(page.sent).toHaveLength(3);
  expect(
    within(dialog)
      .getAllByTestId("command")
      .map((command) => command.textContent),
  ).toEqual(["curl one", "curl two"]);
  expect(within(dialog).getByRole("alert")).toHaveTextContent("gone: It has another owner now.");
  await userEvent.keyboard("{Escape}");
  expect(dialog).toBeVisible();
  await userEvent.click(
    within(dialog).getAllByRole("button", { name: "Close" }).at(-1) as HTMLElement,
  );
  expect(screen.queryByRole("dialog")).toBeNull();
});

it("shows the commands where the clipboard refuses", async () => {
  opened({
    "GET /api/v2/workspaces": { workspaces: [machine("one", "disconnected")], count: 1 },
    "GET /api/v2/workspaces/one/external-agent/main/credentials": { command: "curl one" },
  });
  Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true });
  document.execCommand = () => false;
  await userEvent.click(await screen.findByLabelText("Select one"));
  const button = screen.getByRole("button", { name: "Copy attach commands" });
  await waitFor(() => expect(button).toBeEnabled());
  await userEvent.click(button);
  const dialog = await screen.findByRole("dialog", { name: "Attach commands" });
  expect(within(dialog).getByTestId("command")).toHaveTextContent("curl one");
});

it.each([
  [null, "-"],
  [{ name: "reboot", value: "3d ago", status: "good" }, "3d agopending: unknown"],
])("says once that the last boot is unknown", (value, expected) => {
  const column = COLUMNS.find(({ id }) => id === "reboot");
  const machine = { lights: value && { host: { values: [value] } } } as unknown as Machine;
  const { container } = render(column?.cell(machine));
  expect(container.textContent).toBe(expected);
});

it("tells machines of one name apart", () => {
  const at = (owner_name: string, name: string, agent: string) =>
    ({ workspace: { owner_name, name }, agent: { name: agent } }) as unknown as Machine;
  expect(
    machineNames([at("ana", "box", "main"), at("ana", "box", "gpu"), at("ben", "pi", "main")]),
  ).toEqual(["ana/box.main", "ana/box.gpu", "pi"]);
});
