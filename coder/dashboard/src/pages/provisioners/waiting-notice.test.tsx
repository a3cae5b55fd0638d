import { screen, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";

import { visit } from "../../test/world";
import { WaitingNotice } from "./WaitingNotice";

const open = (verdict: string, summary: string) => visit([{ path: "/", element: <WaitingNotice organization="o" job={{ id: "j", queue_position: 1, queue_size: 2 }} /> }], "/", { "GET /api/v2/organizations/o/provisionerjobs/j/why": { verdict, summary, remedy: null, daemons: [] } });

it("says why a job waits, and at which place", async () => {
  open("queued", "All are busy.");
  expect(await screen.findByText("All are busy.")).toBeVisible();
  expect(screen.getByText("It is number 1 of 2 in the queue.")).toBeVisible();
});

it("says nothing of a job that was taken meanwhile", async () => {
  const page = open("not_waiting", "The job does not wait: it is running by vm-2.");
  await waitFor(() => expect(screen.queryByRole("status")).toBeNull());
  expect(page.asked).toContain("GET /api/v2/organizations/o/provisionerjobs/j/why");
  expect(screen.queryByText(/does not wait/)).toBeNull();
});
