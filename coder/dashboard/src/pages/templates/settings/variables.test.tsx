import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { Outlet } from "react-router";
import { expect, it } from "vitest";

import { visit, type Answers } from "../../../test/world";
import { TemplateVariablesPage } from "./VariablesPage";

const template = { id: "t", name: "box", organization_id: "o", active_version_id: "v1" };
const region = (value: string) => [
  {
    name: "region",
    description: "",
    type: "string",
    value,
    default_value: "",
    required: true,
    sensitive: false,
  },
];
const version = (id: string) => ({
  id,
  job: {
    id: `job-${id}`,
    file_id: `file-${id}`,
    tags: { scope: "organization" },
    status: "succeeded",
  },
});

/** The layout of the page, which follows the template. */
function Frame() {
  const [now, setNow] = useState(template);
  return (
    <>
      <button onClick={() => setNow({ ...now, active_version_id: "v2" })}>
        Another becomes active
      </button>
      <Outlet context={now} />
    </>
  );
}

async function open(active: string) {
  const answers: Answers = {
    "GET /api/v2/templates/t": { ...template, active_version_id: active },
    "GET /api/v2/templateversions/v1": version("v1"),
    "GET /api/v2/templateversions/v2": version("v2"),
    "GET /api/v2/templateversions/v3": version("v3"),
    "GET /api/v2/templateversions/v1/variables": region("eu"),
    "GET /api/v2/templateversions/v2/variables": region("us"),
    "GET /api/v2/templateversions/v3/variables": region("asia"),
    "GET /api/v2/templateversions/v3/logs": [],
    "POST /api/v2/organizations/o/templateversions": { id: "v3" },
    "PATCH /api/v2/templates/t/versions": {},
  };
  const page = visit(
    [
      {
        path: "/",
        Component: Frame,
        children: [{ index: true, Component: TemplateVariablesPage }],
      },
    ],
    "/",
    answers,
  );
  const field = await screen.findByLabelText(/region/);
  await userEvent.clear(field);
  await userEvent.type(field, "asia");
  if (active !== "v1")
    await userEvent.click(screen.getByRole("button", { name: "Another becomes active" }));
  await userEvent.click(screen.getByRole("button", { name: "Save as new version" }));
  return page;
}

const created = (from: string) => ({
  method: "POST",
  path: "/api/v2/organizations/o/templateversions",
  body: expect.objectContaining({
    template_id: "t",
    file_id: `file-${from}`,
    user_variable_values: [{ name: "region", value: "asia" }],
  }) as unknown,
});
const active = { method: "PATCH", path: "/api/v2/templates/t/versions", body: { id: "v3" } };

it("creates a version with the values", async () => {
  const page = await open("v1");
  await expect.poll(() => page.sent).toEqual([created("v1"), active]);
});

it("keeps input when another version becomes active", async () => {
  const page = await open("v2");
  await screen.findByText(/Another version became active/);
  expect(screen.getByLabelText(/region/)).toHaveValue("asia");
  expect(page.sent).toEqual([]);
  await userEvent.click(screen.getByRole("button", { name: "Save anyway" }));
  await expect.poll(() => page.sent).toEqual([created("v2"), active]);
});

it("discards input on request", async () => {
  const page = await open("v2");
  await userEvent.click(await screen.findByRole("button", { name: "Discard my changes" }));
  await expect.poll(() => screen.queryByDisplayValue("us")).toBeVisible();
  expect(page.sent).toEqual([]);
});
