import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { Template, TemplateRollout, TemplateVersion } from "../../../api/types";
import { Refusal, visit } from "../../../test/world";
import { nextStage, reachOf, readStages } from "./rollout";
import { RolloutCard } from "./RolloutCard";
import { StartRollout } from "./StartRollout";

const PATH = "/api/v2/templates/t/rollouts";
const template = { id: "t", organization_id: "o", organization_name: "crew" } as Template;
const version = { id: "v2", name: "v2" } as TemplateVersion;
const NOW = "2026-01-02T03:04:05Z";

const rollout = (changes: Partial<TemplateRollout> = {}): TemplateRollout => ({
  id: "r",
  template_id: "t",
  template_version_id: "v2",
  template_version_name: "v2",
  former_version_id: "v1",
  former_version_name: "v1",
  group_id: null,
  group_name: "",
  stages: [5, 25, 100],
  percent: 5,
  status: "running",
  message: "",
  failure_percent: 20,
  minimum_builds: 5,
  created_by_name: "ann",
  created_at: NOW,
  updated_at: NOW,
  stage_started_at: NOW,
  ended_at: null,
  progress: {
    workspaces: 40,
    offered: 3,
    updated: 0,
    builds_succeeded: 0,
    builds_failed: 0,
    builds_unfinished: 1,
    failure_percent: null,
  },
  ...changes,
});

const open = (list: readonly TemplateRollout[], answer: unknown = rollout()) =>
  visit([{ path: "/", element: <RolloutCard template={template} /> }], "/", {
    [`GET ${PATH}`]: list,
    [`PATCH ${PATH}`]: answer,
  });

const fact = (label: RegExp) =>
  screen.getByText(label).parentElement?.querySelector("dd")?.textContent;

it("shows counts, and a dash for a rate that is not known", async () => {
  open([rollout()]);
  expect(await screen.findByText("Workspaces")).toBeInTheDocument();
  expect([fact(/^Workspaces$/), fact(/^Offered$/), fact(/^Updated$/)]).toEqual(["40", "3", "0"]);
  expect(fact(/^Failure rate/)).toBe("-");
  expect(screen.getByText("5%")).toHaveAttribute("aria-current", "step");
});

it("shows dashes for counts that are not known", async () => {
  open([rollout({ progress: null })]);
  expect(await screen.findByText("Offered")).toBeInTheDocument();
  expect([fact(/^Offered$/), fact(/^Builds failed$/)]).toEqual(["-", "-"]);
});

it("goes on from the stage that the page shows", async () => {
  const page = open([rollout()]);
  await userEvent.click(await screen.findByRole("button", { name: "Advance to 25%…" }));
  const dialog = await screen.findByRole("dialog");
  expect(dialog).toHaveTextContent("v2 will be offered to 25% of the workspaces.");
  await userEvent.click(within(dialog).getByRole("button", { name: "Advance" }));
  await waitFor(() =>
    expect(page.sent.at(-1)).toEqual({
      method: "PATCH",
      path: PATH,
      body: { rollout_id: "r", action: "next", percent: 5, status: "running" },
    }),
  );
});

it("says why it stopped, and offers to resume, complete or roll back", async () => {
  const message = "Stopped automatically: 3 of 5 builds failed (limit 20 percent).";
  const page = open([rollout({ status: "stopped", percent: 25, message })]);
  expect(await screen.findByText(message)).toBeInTheDocument();
  expect(screen.getByRole("button", { name: "Complete rollout…" })).toBeInTheDocument();
  await userEvent.click(screen.getByRole("button", { name: "Resume rollout" }));
  await waitFor(() => expect(page.sent.at(-1)?.body).toMatchObject({ action: "resume" }));
  await userEvent.click(screen.getByRole("button", { name: "Complete rollout…" }));
  const question = await screen.findByRole("dialog");
  await userEvent.click(within(question).getByRole("button", { name: "Complete rollout" }));
  await waitFor(() =>
    expect(page.sent.at(-1)?.body).toMatchObject({ action: "next", status: "stopped" }),
  );
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  await userEvent.click(screen.getByRole("button", { name: "Roll back…" }));
  const dialog = await screen.findByRole("dialog");
  expect(dialog).toHaveTextContent("back to the active version, v1.");
  await userEvent.click(within(dialog).getByRole("button", { name: "Roll back" }));
  await waitFor(() => expect(page.sent.at(-1)?.body).toMatchObject({ action: "rollback" }));
});

it("lists rollouts that ended, and nothing without any", async () => {
  open([rollout({ status: "rolled_back", progress: null, ended_at: NOW, message: "" })]);
  const earlier = await screen.findByRole("list", { name: "Earlier rollouts" });
  expect(earlier).toHaveTextContent(/v2: rolled back .* at 5%/);
  expect(screen.queryByRole("button")).toBeNull();
});

it("starts with a group, and keeps the input after a refusal", async () => {
  const page = visit(
    [
      {
        path: "/",
        element: (
          <StartRollout
            template={template}
            version={version}
            onClose={() => undefined}
            onStarted={() => Promise.resolve()}
          />
        ),
      },
    ],
    "/",
    {
      "GET /api/v2/organizations/crew/groups": [
        { id: "o", name: "Everyone", display_name: "" },
        { id: "g", name: "testers", display_name: "" },
      ],
      [`POST ${PATH}`]: new Refusal(409, "The template has a rollout already."),
    },
  );
  expect(await screen.findByRole("option", { name: "Group testers" })).toBeInTheDocument();
  expect(screen.queryByRole("option", { name: "Group Everyone" })).toBeNull();
  await userEvent.selectOptions(screen.getByRole("combobox", { name: "Begin with" }), "g");
  expect(screen.getByRole("textbox", { name: "Stages" })).toHaveValue("0, 100");
  await userEvent.click(screen.getByRole("button", { name: "Start rollout" }));
  expect(await screen.findByText("The template has a rollout already.")).toBeInTheDocument();
  expect(page.sent.at(-1)?.body).toEqual({
    template_version_id: "v2",
    group_id: "g",
    stages: [0, 100],
    failure_percent: 20,
    minimum_builds: 5,
  });
  expect(screen.getByRole("textbox", { name: "Stages" })).toHaveValue("0, 100");
});

it("previews the version on workspaces before it starts", async () => {
  const preview = {
    id: "p",
    not_previewed: 3,
    changes: null,
    previews: [
      {
        id: "q",
        workspace_id: "w",
        workspace_name: "dev",
        owner_name: "ana",
        status: "failed",
        error: "no such image",
        queue_position: 0,
        queue_size: 0,
        changes: null,
        plan: null,
      },
    ],
  };
  const previews = "/api/v2/templates/t/update-preview";
  const dialog = (
    <StartRollout
      template={template}
      version={version}
      onClose={() => undefined}
      onStarted={() => Promise.resolve()}
    />
  );
  const page = visit([{ path: "/", element: dialog }], "/", {
    "GET /api/v2/organizations/crew/groups": [],
    [`POST ${previews}`]: preview,
    [`GET ${previews}/p`]: preview,
  });
  await userEvent.click(await screen.findByRole("button", { name: "Preview on workspaces" }));
  const list = await screen.findByRole("list", { name: "Previewed workspaces" });
  expect(list).toHaveTextContent("ana/devNo plan");
  expect(screen.getByText(/^3 workspaces not previewed/)).toBeInTheDocument();
  expect(page.sent).toEqual([
    { method: "POST", path: previews, body: { template_version_id: "v2" } },
  ]);
});

it.each([
  ["5, 25, 100", [5, 25, 100]],
  ["5%,100%", [5, 100]],
  ["100", [100]],
  ["", null],
  ["five", null],
  ["5,,100", null],
])("reads the stages %j", (text, stages) => {
  expect(readStages(text)).toEqual(stages);
});

it("says that the group was deleted, and what to do", async () => {
  open([rollout({ stages: [0, 50, 100], percent: 0 })]);
  expect(await screen.findByText("The group of this rollout was deleted")).toBeVisible();
  expect(screen.getByText(/^v2 is offered to no workspaces/)).toBeInTheDocument();
  expect(screen.getByText(/^Advance to 50%, or roll back/)).toBeInTheDocument();
  expect(screen.getByText("Deleted group")).toHaveAttribute("aria-current", "step");
});

it.each([
  ["a group that is there", { group_id: "g", group_name: "testers", stages: [0, 100], percent: 0 }],
  ["no group from the start", { stages: [5, 100] }],
])("warns of no deleted group with %s", async (_, changes) => {
  open([rollout(changes)]);
  expect(await screen.findByText("Offered")).toBeInTheDocument();
  expect(screen.queryByText("The group of this rollout was deleted")).toBeNull();
});

it("describes who gets the version", () => {
  const group = { group_id: "g", group_name: "testers", stages: [0, 50, 100], percent: 0 };
  expect(reachOf(rollout())).toBe("5% of the workspaces");
  expect(reachOf(rollout(group))).toBe("testers");
  expect(reachOf(rollout(group), nextStage(rollout(group)))).toBe(
    "testers and 50% of the other workspaces",
  );
  expect(nextStage(rollout({ percent: 25 }))).toBe(100);
});
