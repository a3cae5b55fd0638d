import { act, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { SignedIn } from "../../app/guards";
import { FakeSocket, visit } from "../../test/world";
import { CreateWorkspacePage } from "./CreateWorkspacePage";

const AT = "2026-01-01T00:00:00Z";
const value = (text: string) => ({ value: text, valid: true });
const REGION = {
  name: "region", display_name: "Region", description: "", icon: "", type: "string", form_type: "input", mutable: true, required: false, ephemeral: false, order: 0,
  styling: {}, options: [], validations: [], diagnostics: [], value: value("eu"), default_value: value("eu"),
};
const PRESET = { ID: "p", Name: "Large", Default: true, Description: "", Icon: "", DesiredPrebuildInstances: null, Parameters: [{ Name: "region", Value: "us" }] };

it("asks for nothing that a default preset on its way would write over", async () => {
  let answer = (_: unknown): void => undefined;
  visit([{ element: <SignedIn bare />, children: [{ path: "/templates/:template/workspace", Component: CreateWorkspacePage }] }], "/templates/box/workspace", {
    "GET /api/v2/users/me": { id: "me", username: "ana", name: "", email: "", organization_ids: ["o"], roles: [] },
    "GET /api/v2/organizations": [], "GET /api/v2/users": { users: [], count: 0 },
    "GET /api/v2/organizations/default/templates/box": { id: "t", name: "box", display_name: "Box", description: "", icon: "", organization_id: "o", organization_name: "o", active_version_id: "v", deprecated: false, active_user_count: 1, build_time_stats: {}, updated_at: AT, created_by_name: "ben" },
    "GET /api/v2/templateversions/v": { id: "v", name: "first", job: { id: "j", status: "succeeded" } },
    "GET /api/v2/templates/t/versions": [], "GET /api/v2/templateversions/v/external-auth": [],
    "GET /api/v2/templateversions/v/presets": () => new Promise((done) => { answer = done; }),
  });
  await screen.findByLabelText(/^Workspace name/);
  await act(async () => FakeSocket.to("dynamic-parameters")?.says({ id: -1, diagnostics: [], parameters: [REGION] }));
  expect(screen.queryByLabelText(/Region/)).toBeNull();
  expect(screen.getByTestId("create")).toBeDisabled();
  await act(async () => answer([PRESET]));
  expect(await screen.findByLabelText(/Region/)).toHaveValue("us");
  expect(screen.getByTestId("create")).toBeEnabled();
});
