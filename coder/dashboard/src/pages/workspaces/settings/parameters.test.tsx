import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { Outlet } from "react-router";
import { expect, it } from "vitest";

import { FakeSocket, visit, type Answers } from "../../../test/world";
import { ParametersPage } from "./ParametersPage";

const text = (name: string, value: string) => ({
  name,
  display_name: "",
  description: "",
  icon: "",
  type: "string",
  form_type: "input",
  mutable: true,
  ephemeral: false,
  required: false,
  order: 1,
  value: { valid: true, value },
  default_value: { valid: true, value },
  styling: {},
  options: [],
  validations: [],
  diagnostics: [],
});
const workspace = {
  id: "w",
  name: "lab",
  owner_name: "ana",
  owner_id: "u",
  organization_id: "o",
  latest_build: {
    id: "b1",
    status: "stopped",
    template_version_id: "v1",
    has_external_agent: false,
  },
};

/**
 * The layout of the page, which follows the workspace: a new build, a link to another workspace.
 */
function Frame() {
  const [now, setNow] = useState(workspace);
  return (
    <>
      <button
        onClick={() =>
          setNow({ ...now, latest_build: { ...now.latest_build, id: "b2", status: "starting" } })
        }
      >
        A build begins
      </button>
      <button
        onClick={() =>
          setNow({ ...now, id: "w2", latest_build: { ...now.latest_build, id: "b4" } })
        }
      >
        Another workspace
      </button>
      <Outlet context={now} />
    </>
  );
}

async function open(newest: string, address = "/", meanwhile = "") {
  const answers: Answers = {
    "GET /api/v2/workspacebuilds/b1/parameters": [{ name: "disk", value: "10" }],
    "GET /api/v2/workspacebuilds/b2/parameters": [{ name: "disk", value: newest }],
    "GET /api/v2/workspacebuilds/b4/parameters": [{ name: "disk", value: "70" }],
    "GET /api/v2/workspaces/w": {
      ...workspace,
      latest_build: { ...workspace.latest_build, id: "b2" },
    },
    "POST /api/v2/workspaces/w/builds": { id: "b3" },
  };
  const page = visit(
    [
      { path: "/", Component: Frame, children: [{ index: true, Component: ParametersPage }] },
      { path: "/:owner/:name", element: "the workspace" },
    ],
    address,
    answers,
  );
  await waitFor(() => expect(FakeSocket.to("dynamic-parameters")?.sent).toHaveLength(1));
  FakeSocket.to("dynamic-parameters")?.says({
    id: 1,
    diagnostics: [],
    parameters: [text("disk", "10")],
  });
  const field = await screen.findByLabelText("disk");
  await userEvent.clear(field);
  await userEvent.type(field, "20");
  if (meanwhile !== "") await userEvent.click(screen.getByRole("button", { name: meanwhile }));
  if (meanwhile === "Another workspace") return page;
  await userEvent.click(screen.getByRole("button", { name: "Update and start" }));
  return page;
}

const build = (version: string, disk: string) => ({
  method: "POST",
  path: "/api/v2/workspaces/w/builds",
  body: {
    transition: "start",
    reason: "dashboard",
    template_version_id: version,
    rich_parameter_values: [{ name: "disk", value: disk }],
  },
});

it("builds with the entered values", async () => {
  const page = await open("10");
  await screen.findByText("the workspace");
  expect(page.sent).toEqual([build("v1", "20")]);
});

it("warns the second of two editors and keeps the input", async () => {
  const page = await open("15");
  expect(await screen.findByText(/changed elsewhere/)).toBeVisible();
  expect(screen.getByText("15")).toBeVisible();
  expect(screen.getByLabelText("disk")).toHaveValue("20");
  expect(page.sent).toEqual([]);
  await userEvent.click(screen.getByRole("button", { name: "Save anyway" }));
  await screen.findByText("the workspace");
  expect(page.sent).toEqual([build("v1", "20")]);
});

it("discards input on request", async () => {
  await open("15");
  await userEvent.click(await screen.findByRole("button", { name: "Discard my changes" }));
  expect(screen.getByLabelText("disk")).toHaveValue("15");
});

it("asks for a newer version's values and builds with it", async () => {
  const page = await open("10", "/?templateVersionId=v2");
  await screen.findByText("the workspace");
  expect(FakeSocket.to("dynamic-parameters")?.url).toContain("/templateversions/v2/");
  expect(page.sent).toEqual([build("v2", "20")]);
});

it("keeps input when a build starts, and warns of changes", async () => {
  const page = await open("10", "/", "A build begins");
  await screen.findByText("the workspace");
  expect(page.sent).toEqual([build("v1", "20")]);
  expect(page.requests.filter((request) => request.includes("/b2/"))).toHaveLength(1); // by the save, which checks for changes of others
});

it("does not mix values of two workspaces", async () => {
  await open("10", "/", "Another workspace");
  await waitFor(() => expect(FakeSocket.opened).toHaveLength(2));
  const socket = FakeSocket.opened[1];
  await waitFor(() => expect(socket?.sent).toHaveLength(1));
  socket?.says({ id: 1, diagnostics: [], parameters: [text("disk", "70")] });
  expect(await screen.findByLabelText("disk")).toHaveValue("70");
});
