import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { Refusal, visit, type Answers } from "../../test/world";
import { ProxiesPage } from "./ProxiesPage";

vi.mock("../../features/proxy/latency", async (original) => ({
  ...(await original<object>()),
  measure: async () => 20,
}));

const proxy = (name: string, status: string, errors: string[] = []) => ({
  id: name,
  name,
  display_name: "",
  icon_url: "",
  healthy: status === "ok",
  path_app_url: `https://${name}.test`,
  wildcard_hostname: "",
  version: "v1",
  status: { status, report: { errors, warnings: [] } },
});
const open = (answers: Answers = {}) =>
  visit([{ path: "/", Component: ProxiesPage }], "/", {
    "GET /api/v2/workspaceproxies": {
      regions: [proxy("primary", "ok"), proxy("sydney", "unreachable", ["connection refused"])],
    },
    ...answers,
  });

it("shows the status of each proxy and its errors", async () => {
  open();
  const row = within(await screen.findByTestId("sydney"));
  expect(row.getByText("Unreachable")).toBeVisible();
  expect(row.getByText("connection refused")).toBeVisible();
  expect(within(screen.getByTestId("primary")).queryByRole("button")).toBeNull(); // this server cannot be deleted
});

it("shows a new proxy's token once, hidden until it is asked for", async () => {
  const page = open({
    "POST /api/v2/workspaceproxies": {
      proxy: proxy("tokyo", "unregistered"),
      proxy_token: "tokyo-secret",
    },
  });
  await userEvent.click(await screen.findByRole("button", { name: "Create proxy" }));
  await userEvent.type(screen.getByLabelText(/^Name/), "tokyo");
  await userEvent.click(screen.getByRole("button", { name: "Create proxy" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Proxy tokyo created" }));
  expect(dialog.queryByText(/tokyo-secret/)).toBeNull();
  expect(page.sent).toEqual([
    {
      method: "POST",
      path: "/api/v2/workspaceproxies",
      body: { name: "tokyo", display_name: "", icon: "" },
    },
  ]);
  await userEvent.click(dialog.getByRole("button", { name: "Done" }));
  expect(screen.queryByRole("dialog")).toBeNull();
});

it("keeps the form if the name is taken", async () => {
  open({ "POST /api/v2/workspaceproxies": new Refusal(409, "There is a proxy of that name.") });
  await userEvent.click(await screen.findByRole("button", { name: "Create proxy" }));
  await userEvent.type(screen.getByLabelText(/^Name/), "sydney");
  await userEvent.click(screen.getByRole("button", { name: "Create proxy" }));
  expect(await screen.findByText("There is a proxy of that name.")).toBeVisible();
  expect(screen.getByLabelText(/^Name/)).toHaveValue("sydney");
});

it("deletes only the typed proxy", async () => {
  const page = open({ "DELETE /api/v2/workspaceproxies/sydney": {} });
  await userEvent.click(await screen.findByRole("button", { name: "Delete proxy sydney" }));
  const confirm = await screen.findByTestId("confirm-button");
  expect(confirm).toBeDisabled();
  await userEvent.type(screen.getByTestId("delete-dialog-name-confirmation"), "sydney");
  await userEvent.click(confirm);
  await waitFor(() =>
    expect(page.sent).toEqual([
      { method: "DELETE", path: "/api/v2/workspaceproxies/sydney", body: undefined },
    ]),
  );
});
