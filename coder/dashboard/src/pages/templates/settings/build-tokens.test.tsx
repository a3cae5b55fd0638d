import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { visit } from "../../../test/world";
import { BuildTokens } from "./BuildTokens";

const PATH = "/api/v2/templates/t/build-tokens";
const NAME = "Give tokens all roles of the workspace’s owner";

function open(all_roles: boolean, isOwner: boolean) {
  const allowed = (body: unknown) =>
    Object.fromEntries(
      Object.keys((body as { checks: object }).checks).map((name) => [
        name,
        isOwner || name !== "editDeploymentConfig",
      ]),
    );
  return visit([{ path: "/", element: <BuildTokens template="t" /> }], "/", {
    "POST /api/v2/authcheck": allowed,
    [`GET ${PATH}`]: { all_roles },
    [`PUT ${PATH}`]: (body: unknown) => body,
  });
}

it("shows what the setting exposes, and saves it for owners", async () => {
  const page = open(false, true);
  const control = await screen.findByRole("switch", { name: NAME });
  expect(screen.getByText(/can then act with every role of its users/)).toBeInTheDocument();
  await waitFor(() => expect(control).toBeEnabled());
  await userEvent.click(control);
  await waitFor(() => expect(control).toBeChecked());
  expect(page.sent.filter((sent) => sent.method === "PUT")).toEqual([
    { method: "PUT", path: PATH, body: { all_roles: true } },
  ]);
});

it("lets template managers turn it off only", async () => {
  open(false, false);
  expect(
    await screen.findByText("Only owners of the deployment can turn this on."),
  ).toBeInTheDocument();
  expect(screen.getByRole("switch", { name: NAME })).toBeDisabled();
});

it("lets template managers turn it off", async () => {
  const page = open(true, false);
  const control = await screen.findByRole("switch", { name: NAME });
  expect(control).toBeEnabled();
  await userEvent.click(control);
  await waitFor(() => expect(control).not.toBeChecked());
  expect(page.sent.at(-1)?.body).toEqual({ all_roles: false });
});
