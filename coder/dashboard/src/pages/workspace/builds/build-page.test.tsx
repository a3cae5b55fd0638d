import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { visit } from "../../../test/world";
import { BuildPage } from "./BuildPage";

const build = { id: "b1", build_number: 1, status: "running", transition: "start", reason: "initiator", initiator_name: "ana", template_version_name: "first", created_at: "2026-01-01T00:00:00Z", resources: [],
  job: { id: "j1", status: "succeeded", worker_id: "w", created_at: "2026-01-01T00:00:00Z", started_at: "2026-01-01T00:00:01Z", completed_at: "2026-01-01T00:00:09Z" } };
const workspace = { id: "w1", name: "dev", owner_name: "ana", owner_id: "u", organization_id: "o", latest_build: build };

it("says how a finished build ended, and who ran it", async () => {
  visit([{ path: "/:owner/:workspace/builds/:number", Component: BuildPage }], "/@ana/dev/builds/1", {
    "GET /api/v2/users/ana/workspace/dev": workspace,
    "GET /api/v2/users/ana/workspace/dev/builds/1": build,
    "GET /api/v2/workspaces/w1/builds": [build],
    "GET /api/v2/organizations/o/provisionerjobs/j1/why": { verdict: "not_waiting", summary: "", worker_name: "vm-2", daemons: [], remedy: null },
  });
  expect(await screen.findByText("Succeeded")).toBeVisible();
  expect(await screen.findByText("vm-2")).toBeVisible();
});
