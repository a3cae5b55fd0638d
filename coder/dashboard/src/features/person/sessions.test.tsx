import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { Refusal, visit, type Answers } from "../../test/world";
import { Sessions } from "./Sessions";

const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const session = (id: string, ip_address: string, current = false, user_agent = "") => ({
  id,
  ip_address,
  user_agent,
  current,
  created_at: "2026-01-01T00:00:00Z",
  last_used: "2026-01-02T00:00:00Z",
  expires_at: "2030-01-01T00:00:00Z",
  login_type: "password",
  scopes: ["coder:all"],
});

function open(answers: Answers = {}) {
  let sessions = [
    session("here", "10.0.0.1", true),
    session("laptop", "10.0.0.2", false, FIREFOX),
    session("phone", "10.0.0.3"),
  ];
  const endSession = (id: string) => () => {
    sessions = sessions.filter((item) => item.id !== id);
    return {};
  };
  return visit([{ path: "/", Component: Sessions }], "/", {
    "GET /api/v2/users/me/sessions": () => sessions,
    "DELETE /api/v2/users/me/keys/laptop": endSession("laptop"),
    "DELETE /api/v2/users/me/keys/phone": endSession("phone"),
    ...answers,
  });
}

it("ends only the selected session", async () => {
  const page = open();
  await userEvent.click(
    await screen.findByRole("button", {
      name: "End the session of Firefox on Linux from 10.0.0.2",
    }),
  );
  await userEvent.click(await screen.findByRole("button", { name: "End session" }));
  await waitFor(() => expect(screen.queryByTestId("session-laptop")).toBeNull());
  expect(page.sent.map((request) => request.path)).toEqual(["/api/v2/users/me/keys/laptop"]);
  expect(screen.getByTestId("session-phone")).toBeVisible();
});

it("does not offer to end the current session", async () => {
  open();
  const currentRow = within(await screen.findByTestId("session-here"));
  expect(currentRow.getByText("This browser")).toBeVisible();
  expect(currentRow.getByText(/in use now/)).toBeVisible(); // not when it was last recorded
  expect(currentRow.queryByRole("button")).toBeNull();
});

it("ends all other sessions", async () => {
  const page = open();
  await userEvent.click(await screen.findByRole("button", { name: "End other sessions…" }));
  await userEvent.click(await screen.findByRole("button", { name: "End sessions" }));
  await waitFor(() =>
    expect(page.sent.map((request) => request.path)).toEqual([
      "/api/v2/users/me/keys/laptop",
      "/api/v2/users/me/keys/phone",
    ]),
  );
});

it("counts a session that is gone as ended, and names one that is not", async () => {
  open({
    "DELETE /api/v2/users/me/keys/laptop": new Refusal(404, "Not found."),
    "DELETE /api/v2/users/me/keys/phone": new Refusal(500, "Busy."),
  });
  await userEvent.click(await screen.findByRole("button", { name: "End other sessions…" }));
  await userEvent.click(await screen.findByRole("button", { name: "End sessions" }));
  expect(await screen.findByText("Not ended: from 10.0.0.3. Busy.")).toBeVisible();
  expect(screen.getByText("End the session from 10.0.0.3?")).toBeVisible();
});
