import { cleanup, screen, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";

import { visit } from "../../test/world";
import { WaitingNotice } from "./WaitingNotice";

const open = (
  verdict: string,
  summary: string,
  may = true,
  remedy: object | null = null,
  staying = false,
) =>
  visit(
    [
      {
        path: "/",
        element: (
          <WaitingNotice
            organization="o"
            job={{ id: "j", queue_position: 1, queue_size: 2 }}
            staying={staying}
          />
        ),
      },
    ],
    "/",
    {
      "GET /api/v2/organizations/o/provisionerjobs/j/why": {
        verdict,
        summary,
        remedy,
        daemons: [],
      },
      "GET /api/v2/organizations": [
        { id: "o", name: "acme", display_name: "Acme", is_default: true },
      ],
      "POST /api/v2/authcheck": ({ checks }: { checks: object }) =>
        Object.fromEntries(Object.keys(checks).map((name) => [name, may])),
    },
  );

it("shows the reason and the queue position", async () => {
  open("queued", "All are busy.");
  expect(await screen.findByText("All are busy.")).toBeVisible();
  expect(screen.getByText("Position 1 of 2 in the queue.")).toBeVisible();
});

it("hides once the job was acquired", async () => {
  const page = open("not_waiting", "The job does not wait: it is running by vm-2.");
  await waitFor(() => expect(screen.queryByRole("status")).toBeNull());
  expect(page.requests).toContain("GET /api/v2/organizations/o/provisionerjobs/j/why");
  expect(screen.queryByText(/does not wait/)).toBeNull();
});

it.each([
  [true, /^Start a matching provisioner/],
  [false, /^A provisioner administrator/],
])("explains the command to users who may start provisioners: %s", async (may, words) => {
  open("no_match", "None has the tag.", may, {
    command: "coder provisioner start --tag gpu=yes",
    notes: [],
  });
  expect(await screen.findByText(words)).toBeVisible();
});

it("links to the queue for provisioner administrators only", async () => {
  open("queued", "All are busy.");
  expect(await screen.findByRole("link", { name: "View queue" })).toHaveAttribute(
    "href",
    "/organizations/acme/provisioner-jobs?ids=j",
  );
  expect(screen.getByRole("link", { name: "View provisioners" })).toHaveAttribute(
    "href",
    "/organizations/acme/provisioners",
  );
  cleanup();
  const page = open("queued", "All are busy.", false);
  expect(await screen.findByText("All are busy.")).toBeVisible();
  await waitFor(() => expect(page.requests).toContain("POST /api/v2/authcheck"));
  await waitFor(() => expect(page.fetching()).toBe(0));
  expect(screen.queryByRole("link")).toBeNull();
});

it.each([
  [true, "_blank"],
  [false, null],
])("opens links in a new tab if required: %s", async (staying, target) => {
  open("nobody", "No provisioner may run it.", true, null, staying);
  expect(await screen.findByRole("link", { name: "View queue" })).toHaveProperty(
    "target",
    target ?? "",
  );
  expect(screen.getByRole("link", { name: "View provisioners" })).toHaveProperty(
    "target",
    target ?? "",
  );
});

it.each([
  ["nobody", true],
  ["all_offline", true],
  ["queued", false],
  ["starts_now", false],
])("warns of reasons that waiting does not resolve: %s", async (verdict, warns) => {
  open(verdict, "So it is.");
  expect(await screen.findByText("So it is.")).toBeVisible();
  expect(screen.getByRole("status").className.includes("bg-warn-soft")).toBe(warns);
});
