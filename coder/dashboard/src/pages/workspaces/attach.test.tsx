// Attaching an existing machine: from the button of the list to the template, or to creating it
// first.
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { AuthorizationCheck } from "../../api/types";
import { visit, type Answers } from "../../test/world";
import { AttachPage } from "./AttachPage";
import { NewWorkspace } from "./NewWorkspace";

const template = (name: string) => ({
  id: name,
  name,
  display_name: "",
  description: "",
  icon: "",
  organization_id: "o",
  organization_name: "org",
  deprecated: false,
  active_user_count: 0,
  created_at: "2026-01-01T00:00:00Z",
});

function open(attachable: string[], answers: Answers = {}) {
  return visit(
    [
      { path: "/workspaces", Component: NewWorkspace },
      { path: "/workspaces/attach", Component: AttachPage },
      { path: "*", element: "elsewhere" },
    ],
    "/workspaces",
    {
      "GET /api/v2/templates": (_: unknown, query: URLSearchParams) =>
        (query.get("q")?.includes("has_external_agent:true") ? attachable : ["docker"]).map(
          template,
        ),
      ...answers,
    },
  );
}
const attach = async () => {
  await userEvent.click(await screen.findByRole("button", { name: "New workspace" }));
  await userEvent.click(await screen.findByRole("link", { name: "Attach a machine" }));
};

it("links to a workspace form of an external template only", async () => {
  const page = open(["rack"]);
  await attach();
  await userEvent.click(await screen.findByRole("link", { name: "Attach with rack" }));
  expect(page.at()).toBe("/templates/org/rack/workspace");
});

it("suggests the starter template if there is none", async () => {
  const page = open([]);
  await attach();
  await userEvent.click(await screen.findByRole("link", { name: "Use starter template" }));
  expect(page.at()).toBe("/templates/new?exampleId=externally-managed-workspace&then=workspace");
});

it("refers users without permission to an administrator", async () => {
  open([], {
    "POST /api/v2/authcheck": ({ checks }: { checks: Record<string, AuthorizationCheck> }) =>
      Object.fromEntries(
        Object.entries(checks).map(([name, check]) => [
          name,
          check.object.resource_type !== "template",
        ]),
      ),
  });
  await attach();
  expect(await screen.findByText(/A template administrator has to create one/)).toBeVisible();
  await waitFor(() =>
    expect(screen.queryByRole("link", { name: "Use starter template" })).toBeNull(),
  );
});
