import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { AuditLog } from "../../api/types";
import { SignedIn, visit } from "../../test/world";
import { Entry } from "./AuditEntry";

const ENTRY = {
  id: "e",
  request_id: "r",
  time: "2026-01-31T08:00:00Z",
  ip: "192.0.2.7",
  user_agent: "",
  action: "write",
  diff: { name: { old: "old-name", new: "new-name", secret: false } },
  status_code: 200,
  additional_fields: {},
  description: "{user} updated template {target}",
  resource_type: "template",
  resource_target: "local",
  resource_link: "",
  is_deleted: false,
  organization: { id: "o", name: "coder", display_name: "Coder", icon: "" },
} as unknown as AuditLog;

it.each([
  ["names", [{ id: "o" }, { id: "p" }], 1],
  ["leaves out", [{ id: "o" }], 0],
])("%s the organization among %j", async (_, organizations, times) => {
  visit(
    [{ element: <SignedIn bare />, children: [{ path: "/", element: <Entry entry={ENTRY} /> }] }],
    "/",
    { "GET /api/v2/users/me": { username: "ana" }, "GET /api/v2/organizations": organizations },
  );
  await userEvent.click(await screen.findByText(/192\.0\.2\.7/));
  expect(await screen.findByText(/new-name/)).toBeVisible();
  expect(screen.queryAllByText(/in Coder/)).toHaveLength(times);
});
