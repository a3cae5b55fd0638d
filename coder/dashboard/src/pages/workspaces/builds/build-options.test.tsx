import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import type { Workspace } from "../../../api/types";
import { FakeSocket, visit } from "../../../test/world";
import { BuildOptions } from "./BuildOptions";

const workspace = { owner_id: "u", latest_build: { template_version_id: "v1" } } as Workspace;
const parameter = (name: string, ephemeral: boolean) => ({
  name,
  display_name: "",
  description: "",
  icon: "",
  type: "bool",
  form_type: "checkbox",
  mutable: true,
  ephemeral,
  required: false,
  order: 1,
  value: { valid: true, value: "false" },
  default_value: { valid: true, value: "false" },
  styling: {},
  options: [],
  validations: [],
  diagnostics: [],
});

it("offers ephemeral parameters", async () => {
  const onBuild = vi.fn();
  visit(
    [{ path: "/", element: <BuildOptions workspace={workspace} verb="Start" onBuild={onBuild} /> }],
    "/",
    {
      "GET /api/v2/templateversions/v1/rich-parameters": [
        { name: "clean", ephemeral: true },
        { name: "size", ephemeral: false },
      ],
    },
  );
  await userEvent.click(await screen.findByRole("button", { name: "Start with build options" }));
  await waitFor(() => expect(FakeSocket.to("dynamic-parameters")).toBeDefined());
  FakeSocket.to("dynamic-parameters")?.says({
    id: 0,
    diagnostics: [],
    parameters: [parameter("clean", true), parameter("size", false)],
  });
  await userEvent.click(await screen.findByLabelText(/clean/));
  expect(screen.queryByLabelText(/size/)).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Start" }));
  expect(onBuild).toHaveBeenCalledWith([{ name: "clean", value: "true" }]);
});

it("is hidden without ephemeral parameters", async () => {
  const page = visit(
    [
      {
        path: "/",
        element: (
          <>
            <p>page</p>
            <BuildOptions workspace={workspace} verb="Start" onBuild={() => undefined} />
          </>
        ),
      },
    ],
    "/",
    { "GET /api/v2/templateversions/v1/rich-parameters": [{ name: "size", ephemeral: false }] },
  );
  await waitFor(() =>
    expect(page.requests).toContain("GET /api/v2/templateversions/v1/rich-parameters"),
  );
  await act(async () => undefined);
  expect(screen.queryByRole("button")).toBeNull();
});
