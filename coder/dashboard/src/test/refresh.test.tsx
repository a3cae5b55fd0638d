// A failed refresh removes neither a page nor its input.
import { focusManager } from "@tanstack/react-query";
import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { SignedIn } from "./world";
import { Refusal, visit } from "./world";
import { NotificationsPage } from "../pages/account/NotificationsPage";
import { IdpSyncPage } from "../pages/organizations/IdpSyncPage";

const me = {
  id: "me",
  username: "ana",
  name: "",
  email: "ana@example.com",
  organization_ids: ["o"],
  roles: [],
};
const organization = { id: "o", name: "coder", display_name: "", is_default: true };
const template = {
  id: "n",
  name: "Workspace Deleted",
  kind: "system",
  group: "Workspace Events",
  method: "",
  enabled_by_default: true,
};

async function refocus(): Promise<void> {
  await act(async () => {
    focusManager.setFocused(false);
    focusManager.setFocused(true);
    focusManager.setFocused(undefined);
  });
}

it("of the notification preferences", async () => {
  let sessionEnded = false;
  const page = visit(
    [{ element: <SignedIn bare />, children: [{ path: "/", Component: NotificationsPage }] }],
    "/",
    {
      "GET /api/v2/users/me": me,
      "GET /api/v2/organizations": [organization],
      "GET /api/v2/users/me/notifications/preferences": () =>
        sessionEnded ? new Refusal(500, "The database is gone.") : [],
      "GET /api/v2/notifications/templates/system": [template],
      "GET /api/v2/notifications/templates/custom": [],
      "GET /api/v2/notifications/dispatch-methods": { available: [], default: "smtp" },
      "GET /api/v2/notifications/delivery": { methods: ["smtp"] },
    },
  );
  expect(await screen.findByRole("switch", { name: /Workspace Deleted/ })).toBeVisible();
  sessionEnded = true;
  await refocus();
  await waitFor(() =>
    expect(
      page.requests.filter((request) => request.endsWith("/notifications/preferences")),
    ).toHaveLength(2),
  );
  await waitFor(() => expect(page.fetching()).toBe(0));
  expect(screen.getByRole("switch", { name: /Workspace Deleted/ })).toBeVisible();
});

it("of the group mappings", async () => {
  let sessionEnded = false;
  const settings = {
    field: "",
    mapping: {},
    regex_filter: null,
    auto_create_missing_groups: false,
  };
  const page = visit(
    [
      {
        element: <SignedIn bare />,
        children: [{ path: "/organizations/:organization/idp-sync", Component: IdpSyncPage }],
      },
    ],
    "/organizations/coder/idp-sync",
    {
      "GET /api/v2/users/me": me,
      "GET /api/v2/organizations": [organization],
      "GET /api/v2/organizations/coder": organization,
      "GET /api/v2/organizations/coder/settings/idpsync/groups": () =>
        sessionEnded ? new Refusal(500, "The database is gone.") : settings,
      "GET /api/v2/organizations/coder/settings/idpsync/roles": { field: "", mapping: {} },
      "GET /api/v2/organizations/coder/groups": [],
      "GET /api/v2/organizations/coder/members/roles": [],
    },
  );
  await userEvent.type(await screen.findByLabelText("Group sync field"), "groups");
  sessionEnded = true;
  await refocus();
  await waitFor(() =>
    expect(page.requests.filter((request) => request.endsWith("/idpsync/groups"))).toHaveLength(2),
  );
  await waitFor(() => expect(page.fetching()).toBe(0));
  expect(screen.getByLabelText("Group sync field")).toHaveValue("groups");
});
