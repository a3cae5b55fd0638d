import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";

import type { Workspace } from "../../api/types";
import { visit } from "../../test/world";
import { DeleteWorkspace } from "./DeleteWorkspace";

const workspace = {
  id: "w",
  name: "dev",
  template_id: "t",
  organization_id: "o",
  created_at: "2026-01-01T00:00:00Z",
  last_used_at: "2026-01-01T00:00:00Z",
  latest_build: { has_external_agent: false, resources: [] },
} as unknown as Workspace;

function Asking() {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Ask
      </button>
      <DeleteWorkspace workspace={workspace} open={open} onClose={() => setOpen(false)} />
    </>
  );
}

it("resets the checkbox after a canceled dialog", async () => {
  const page = visit([{ path: "/", Component: Asking }], "/", {
    "POST /api/v2/workspaces/w/builds": {},
  });
  await userEvent.click(screen.getByRole("button", { name: "Ask" }));
  await userEvent.click(await screen.findByTestId("orphan-checkbox"));
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  await userEvent.click(screen.getByRole("button", { name: "Ask" }));
  expect(await screen.findByTestId("orphan-checkbox")).not.toBeChecked();
  await userEvent.type(screen.getByTestId("delete-dialog-name-confirmation"), "dev{Enter}");
  await screen.findByRole("button", { name: "Ask" });
  expect(page.sent.at(-1)?.body).toEqual({ transition: "delete", reason: "dashboard" });
});
