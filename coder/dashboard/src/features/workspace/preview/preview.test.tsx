// Previews of updates: what is said about disks, progress, and that a closed page cancels.
import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { Template, Workspace } from "../../../api/types";
import { Refusal, visit } from "../../../test/world";
import { TemplatePreview } from "./TemplatePreview";
import { WorkspacePreview } from "./WorkspacePreview";

const workspace = { id: "w", template_active_version_id: "v2" } as unknown as Workspace;
const template = { id: "t" } as unknown as Template;
const PATH = "/api/v2/workspaces/w/update-preview";
const TEMPLATE_PATH = "/api/v2/templates/t/update-preview";

const preview = (status: string, more: object = {}) => ({
  id: "p",
  workspace_id: "w",
  workspace_name: "dev",
  owner_name: "ana",
  status,
  error: "",
  queue_position: 0,
  queue_size: 0,
  changes: null,
  plan: null,
  ...more,
});
const plan = (disk: string, summary: string[], more: object = {}) => ({
  known: true,
  summary,
  disk,
  counts: {},
  resources: [],
  agents: [],
  omitted: 0,
  ...more,
});
const CHANGES = {
  from_version_id: "v1",
  from_version_name: "one",
  to_version_id: "v2",
  to_version_name: "two",
  parameters: [
    { name: "region", change: "added", fields: [], required: true, value: null },
    { name: "size", change: "changed", fields: ["default_value"], required: false, value: "small" },
  ],
  files: [{ path: "main.tf", change: "changed", diff: "-old\n+new" }],
  files_omitted: 0,
};

function open(started: object, later: unknown) {
  return visit([{ path: "/", element: <WorkspacePreview workspace={workspace} /> }], "/", {
    [`POST ${PATH}`]: started,
    [`GET ${PATH}/p`]: later,
    [`DELETE ${PATH}/p`]: {},
  });
}
const begin = () =>
  userEvent.click(screen.getByRole("button", { name: /Preview (changes|on workspaces)/ }));

it("asks for nothing before the click", () => {
  const page = open(preview("pending"), preview("pending"));
  expect(page.requests).toEqual([]);
});

it("shows the plan, parameters and files", async () => {
  const resources = [
    {
      address: "docker_volume.home",
      type: "",
      name: "",
      action: "keep",
      disk: true,
      attributes: [],
    },
    {
      address: "docker_container.box",
      type: "",
      name: "",
      action: "replace",
      disk: false,
      attributes: [
        { path: "image", before: '"a:1"', after: '"a:2"', forces_replacement: true },
        { path: "env", before: "", after: "", forces_replacement: false },
      ],
    },
  ];
  const done = preview("succeeded", {
    plan: plan("kept", ["Your disk stays.", "Resources: 1 kept, 1 replaced."], { resources }),
  });
  const page = open(
    preview("pending", { changes: CHANGES, queue_position: 2, queue_size: 3 }),
    done,
  );
  await begin();
  expect(await screen.findByText("Your disk stays.")).toBeVisible();
  expect(screen.getByText("Resources: 1 kept, 1 replaced.")).toBeVisible();
  expect(screen.getByText(/image: "a:1" → "a:2" \(forces replacement\)/)).toBeVisible();
  expect(screen.queryByText("docker_volume.home")).toBeNull();
  expect(screen.getByText(/requires a value/)).toHaveTextContent("Added parameter region");
  expect(screen.getByText("main.tf")).toBeVisible();
  expect(page.sent).toEqual([{ method: "POST", path: PATH, body: { template_version_id: "v2" } }]);
});

it.each([
  ["lost", "Your disk does not stay: docker_volume.home.", "alert"],
  ["unknown", "It is not known whether your disk stays.", "status"],
])("says that a disk is %s", async (disk, sentence, role) => {
  open(preview("pending"), preview("succeeded", { plan: plan(disk, [sentence]) }));
  await begin();
  expect(await screen.findByText(sentence)).toBeVisible();
  expect(screen.getByRole(role)).toHaveTextContent(sentence);
});

it("shows its place in the queue and cancels", async () => {
  let status = "pending";
  const page = visit([{ path: "/", element: <WorkspacePreview workspace={workspace} /> }], "/", {
    [`POST ${PATH}`]: preview("pending"),
    [`GET ${PATH}/p`]: () => preview(status, { queue_position: 2, queue_size: 3 }),
    [`DELETE ${PATH}/p`]: () => {
      status = "canceled";
      return {};
    },
  });
  await begin();
  expect(await screen.findByText(/Queued \(2 of 3\)/)).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Stop preview" }));
  expect(await screen.findByText("The preview was stopped.")).toBeVisible();
  expect(screen.getByRole("button", { name: "Preview again" })).toBeVisible();
  expect(page.sent.map((request) => request.method)).toEqual(["POST", "DELETE"]);
});

it.each([
  ["running", 1],
  ["succeeded", 0],
])("a closed page cancels a preview that is %s: %i request", async (status, requests) => {
  const page = open(
    preview("pending"),
    preview(status, status === "running" ? {} : { plan: plan("none", ["No disk."]) }),
  );
  await begin();
  await screen.findByText(status === "running" ? /is planning/ : "No disk.");
  act(() => void window.dispatchEvent(new Event("pagehide")));
  await waitFor(() => expect(page.fetching()).toBe(0));
  expect(page.sent.filter((request) => request.method === "DELETE")).toHaveLength(requests);
});

it("explains why there is no plan", async () => {
  open(preview("failed", { id: null, error: "region: required", changes: CHANGES }), undefined);
  await begin();
  expect(await screen.findByText("There is no plan")).toBeVisible();
  expect(screen.getByText("region: required")).toBeVisible();
  expect(screen.getByText("one → two")).toBeVisible();
});

it("offers a retry after a refusal", async () => {
  open(new Refusal(409, "A workspace build is already active."), undefined);
  await begin();
  expect(await screen.findByText("A workspace build is already active.")).toBeVisible();
  expect(screen.getByRole("button", { name: /again|retry/i })).toBeVisible();
});

it("ends the wait when the user loses the permission", async () => {
  let answers = 0;
  const page = visit([{ path: "/", element: <WorkspacePreview workspace={workspace} /> }], "/", {
    [`POST ${PATH}`]: preview("pending"),
    [`GET ${PATH}/p`]: () => {
      answers += 1;
      return answers === 1 ? preview("running") : new Refusal(404, "Resource not found");
    },
  });
  await begin();
  expect(await screen.findByText(/is planning/)).toBeVisible();
  expect(await screen.findByText("Resource not found", {}, { timeout: 5000 })).toBeVisible();
  expect(screen.queryByText(/is planning/)).toBeNull();
  expect(page.fetching()).toBe(0);
});

it("hides files from users who may not read them", async () => {
  open(
    preview("succeeded", { changes: { ...CHANGES, files: null, parameters: [] }, id: null }),
    undefined,
  );
  await begin();
  expect(await screen.findByText("No parameter changes.")).toBeVisible();
  expect(screen.getByText(/shown to users who may change the template/)).toBeVisible();
});

const group = (previews: object[], more: object = {}) => ({
  id: "p",
  template_id: "t",
  template_version_id: "v2",
  previews,
  not_previewed: 0,
  changes: null,
  ...more,
});

it("lists workspaces of a template and counts the rest", async () => {
  const lost = preview("succeeded", { plan: plan("lost", ["Your disk does not stay: a.b."]) });
  const failed = preview("failed", { workspace_id: "x", workspace_name: "old", error: "no image" });
  visit([{ path: "/", element: <TemplatePreview template={template} version="v2" /> }], "/", {
    [`POST ${TEMPLATE_PATH}`]: group([preview("pending")], { not_previewed: 285 }),
    [`GET ${TEMPLATE_PATH}/p`]: group([lost, failed], { not_previewed: 285 }),
  });
  await begin();
  expect(await screen.findByText("Disk is lost")).toBeVisible();
  expect(screen.getByText("No plan")).toBeVisible();
  expect(screen.getByText(/285 workspaces not previewed/)).toBeVisible();
});

it("says that no workspace changes", async () => {
  visit([{ path: "/", element: <TemplatePreview template={template} version="v2" /> }], "/", {
    [`POST ${TEMPLATE_PATH}`]: group([], { id: null }),
  });
  await begin();
  expect(await screen.findByText("No workspace that you may update would change.")).toBeVisible();
});
