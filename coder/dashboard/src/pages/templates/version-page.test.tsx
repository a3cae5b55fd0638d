// A version during its import: a user who opens its page later sees the log and may cancel.
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { AuthorizationCheck } from "../../api/types";
import { visit } from "../../test/world";
import { VersionPage } from "./VersionPage";

const CANCEL = "/api/v2/templateversions/v2/cancel";

function open(status: string, mayUpdate: boolean) {
  let state = status;
  return visit(
    [{ path: "/templates/:template/versions/:version", Component: VersionPage }],
    "/templates/box/versions/second",
    {
      "GET /api/v2/organizations/default/templates/box": {
        id: "t",
        name: "box",
        display_name: "Box",
        organization_id: "o",
        organization_name: "org",
        active_version_id: "v1",
      },
      "GET /api/v2/organizations/org/templates/box/versions/second": () => ({
        id: "v2",
        name: "second",
        created_by: { username: "ben" },
        created_at: "2026-01-01T00:00:00Z",
        job: { id: "j", file_id: "f", status: state, tags: {} },
      }),
      "GET /api/v2/organizations/o/provisionerjobs/j/why": {
        verdict: "nobody",
        summary: "Nobody.",
        remedy: null,
        daemons: [],
      },
      "POST /api/v2/authcheck": ({ checks }: { checks: Record<string, AuthorizationCheck> }) =>
        Object.fromEntries(
          Object.entries(checks).map(([name, { action }]) => [
            name,
            action !== "update" || mayUpdate,
          ]),
        ),
      [`PATCH ${CANCEL}`]: () => {
        state = "canceling";
        return {};
      },
    },
  );
}

it.each(["pending", "running"])("cancels an import that is %s without any log", async (status) => {
  const page = open(status, true);
  expect(await screen.findByTestId("import-log")).toBeVisible();
  await userEvent.click(await screen.findByRole("button", { name: "Cancel import" }));
  await waitFor(() => expect(page.sent.map((request) => request.path)).toEqual([CANCEL]));
  await waitFor(() =>
    expect(screen.getByRole("button", { name: "Cancel import" })).toHaveAttribute(
      "aria-disabled",
      "true",
    ),
  );
});

it.each([
  ["succeeded", true],
  ["failed", true],
  ["running", false],
] as const)(
  "offers no cancel if it is %s and update permission is %s",
  async (status, mayUpdate) => {
    const page = open(status, mayUpdate);
    expect(await screen.findByRole("heading", { level: 1, name: "second" })).toBeVisible();
    if (!mayUpdate)
      expect(
        await screen.findByText("You need update permission on the template to view its files."),
      ).toBeVisible();
    await waitFor(() => expect(page.fetching()).toBe(0));
    expect(screen.queryByRole("button", { name: "Cancel import" })).toBeNull();
  },
);
