import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { Template, TemplateVersion } from "../../../api/types";
import { visit } from "../../../test/world";
import { Publish } from "./PublishDialog";

const template = { id: "t", active_version_id: "v1" } as Template;
const version = { id: "v4", name: "fourth", message: "" } as TemplateVersion;

const open = (status: string) => {
  const dialog = (
    <Publish
      template={template}
      version={version}
      active="v1"
      onClose={() => undefined}
      onDone={() => Promise.resolve()}
    />
  );
  return visit([{ path: "/", element: dialog }], "/", {
    "GET /api/v2/templates/t/rollouts": [
      {
        id: "r",
        template_version_name: "third",
        status,
        percent: 25,
        group_id: null,
        stages: [25, 100],
      },
    ],
  });
};

it("says that publishing ends a rollout, unless it only saves the version", async () => {
  open("stopped");
  expect(await screen.findByText("Publishing ends the rollout of third")).toBeVisible();
  expect(screen.getByText(/It has reached 25% of the workspaces/)).toBeVisible();
  await userEvent.click(screen.getByRole("checkbox", { name: "Promote to active version" }));
  expect(screen.queryByText(/ends the rollout/)).toBeNull();
});

it("says nothing about a rollout that has ended", async () => {
  const page = open("rolled_back");
  await screen.findByRole("dialog");
  await expect.poll(() => page.requests.join()).toContain("/rollouts");
  expect(screen.queryByText(/ends the rollout/)).toBeNull();
});
