import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Outlet } from "react-router";
import { expect, it } from "vitest";

import { visit } from "../../../test/world";
import { TemplateSchedulePage } from "./SchedulePage";

const template = {
  id: "t",
  name: "box",
  default_ttl_ms: 0,
  activity_bump_ms: 0,
  failure_ttl_ms: 0,
  time_til_dormant_ms: 0,
  time_til_dormant_autodelete_ms: 0,
  allow_user_autostart: true,
  allow_user_autostop: true,
  autostop_requirement: { days_of_week: ["wednesday", "monday"], weeks: 2 },
  autostart_requirement: { days_of_week: ["monday"] },
};

async function open() {
  const page = visit(
    [
      {
        path: "/",
        element: <Outlet context={template} />,
        children: [{ index: true, Component: TemplateSchedulePage }],
      },
    ],
    "/",
    { "GET /api/v2/templates/t": template, "PATCH /api/v2/templates/t": {} },
  );
  await screen.findByLabelText("Days with required stop");
  const save = async () => {
    await userEvent.click(screen.getByRole("button", { name: "Save" }));
    await waitFor(() => expect(page.sent).toHaveLength(1));
    return (page.sent[0]?.body as typeof template).autostop_requirement;
  };
  return {
    page,
    save,
    days: () => within(screen.getByRole("group", { name: "Days on which workspaces stop" })),
  };
}

it("keeps unusual required-stop days when saving other settings", async () => {
  const { save, days } = await open();
  expect(screen.getByLabelText("Days with required stop")).toHaveDisplayValue("Custom");
  expect(
    days()
      .getAllByRole("checkbox", { checked: true })
      .map((box) => document.querySelector(`label[for="${box.id}"]`)?.textContent),
  ).toEqual(["Monday", "Wednesday"]);
  await userEvent.type(screen.getByLabelText(/Default autostop/), "8");
  expect(await save()).toEqual({ days_of_week: ["monday", "wednesday"], weeks: 2 });
});

it("requires and saves selected days", async () => {
  const { page, save, days } = await open();
  for (const day of ["Monday", "Wednesday"]) await userEvent.click(days().getByLabelText(day));
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("Choose a day or Off.")).toBeVisible();
  expect(page.sent).toEqual([]);
  await userEvent.selectOptions(screen.getByLabelText("Days with required stop"), "Daily");
  expect(screen.queryByRole("group", { name: "Days on which workspaces stop" })).toBeNull();
  await userEvent.selectOptions(screen.getByLabelText("Days with required stop"), "Custom");
  for (const day of ["Saturday", "Sunday"]) await userEvent.click(days().getByLabelText(day));
  expect((await save()).days_of_week).toEqual([
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
  ]);
});
