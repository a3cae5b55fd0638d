// Who may cancel a build: the server's rule, which the template may restrict for a running build.
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { AuthorizationCheck, Workspace } from "../../api/types";
import { SignedIn } from "../../test/world";
import { visit } from "../../test/world";
import { WorkspaceActions } from "./WorkspaceActions";

const BUILDS: Record<string, { status: string; job: string }> = {
  waits: { status: "pending", job: "pending" },
  runs: { status: "starting", job: "running" },
  "is over": { status: "running", job: "succeeded" },
};

it.each([
  { build: "waits", template: false, role: "", update: true, offered: true },
  { build: "waits", template: true, role: "", update: false, offered: false },
  { build: "runs", template: true, role: "", update: true, offered: true },
  { build: "runs", template: false, role: "", update: true, offered: false },
  { build: "runs", template: false, role: "auditor", update: true, offered: false },
  { build: "runs", template: false, role: "owner", update: true, offered: true },
  { build: "is over", template: true, role: "owner", update: true, offered: false },
])(
  "a build that $build, template allows $template, role '$role', update $update: $offered",
  async ({ build, template, role, update, offered }) => {
    const { status, job } = BUILDS[build] ?? { status: "", job: "" };
    const workspace = {
      id: "w",
      name: "lab",
      owner_id: "somebody",
      owner_name: "ben",
      organization_id: "o",
      template_id: "t",
      template_allow_user_cancel_workspace_jobs: template,
      latest_build: {
        id: "b",
        status,
        transition: "start",
        resources: [],
        job: { id: "j", status: job },
      },
    } as unknown as Workspace;
    const page = visit(
      [
        {
          element: <SignedIn bare />,
          children: [{ path: "/", element: <WorkspaceActions workspace={workspace} /> }],
        },
      ],
      "/",
      {
        "GET /api/v2/users/me": {
          id: "me",
          username: "ana",
          name: "",
          email: "",
          organization_ids: ["o"],
          roles: role ? [{ name: role, display_name: role }] : [],
        },
        // Auditors and owners may read the deployment's settings, which gives no permission on builds.
        "POST /api/v2/authcheck": ({ checks }: { checks: Record<string, AuthorizationCheck> }) =>
          Object.fromEntries(
            Object.entries(checks).map(([name, check]) => [
              name,
              check.object.resource_type === "deployment_config"
                ? role !== ""
                : check.action !== "update" || update,
            ]),
          ),
        "PATCH /api/v2/workspacebuilds/b/cancel": {},
        "GET /api/v2/templateversions/v/rich-parameters": [],
      },
    );
    expect(await screen.findByRole("button", { name: "Stop" })).toBeVisible(); // the answers have arrived
    expect(screen.queryAllByRole("button", { name: "Cancel" })).toHaveLength(offered ? 1 : 0);
    if (!offered) return;
    await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
    await waitFor(() =>
      expect(page.sent.map((request) => request.path)).toEqual([
        "/api/v2/workspacebuilds/b/cancel",
      ]),
    );
  },
);
