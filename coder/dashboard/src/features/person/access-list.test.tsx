import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { groupEntry } from "./everyone";
import { Toasts } from "../../ui/toast";
import { AccessList, type Entry } from "./AccessList";

const ROLES = [
  ["use", "Use", "create workspaces from it"],
  ["admin", "Admin", "change it"],
] as const;
const group = (id: string, name: string, members: number) =>
  groupEntry({
    id,
    name,
    display_name: "",
    organization_id: "o",
    avatar_url: "",
    total_member_count: members,
  });
const everyone = group("o", "Everyone", 3);
const staff = group("s", "staff", 1);

function open(entries: readonly Entry[], saved = true) {
  const changes: string[] = [];
  render(
    <>
      <Toasts />
      <AccessList
        label="Who"
        entries={entries}
        roles={ROLES}
        results={[everyone, staff]}
        onSearch={() => undefined}
        emptyText=""
        onChange={async (entry, role) => {
          changes.push(`${entry.name} ${role}`);
          return saved;
        }}
      />
    </>,
  );
  return changes;
}

async function add(name: string) {
  await userEvent.click(screen.getByRole("combobox", { name: "User or group" }));
  await userEvent.click(await screen.findByRole("option", { name: new RegExp(name) }));
  await userEvent.click(screen.getByRole("button", { name: "Add member" }));
}

it("confirms a role for everyone", async () => {
  const changes = open([]);
  await add("Everyone");
  expect(await screen.findByRole("dialog", { name: "Give “Use” to everyone?" })).toHaveTextContent(
    "can then create workspaces from it",
  );
  expect(changes).toEqual([]);
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  expect(changes).toEqual([]);
  await add("Everyone");
  await userEvent.click(await screen.findByTestId("confirm-button"));
  await waitFor(() => expect(changes).toEqual(["Everyone use"]));
});

it.each([
  ["more", "use", "admin", true],
  ["less", "admin", "use", false],
])("confirms %s for everyone only", async (_, previousRole, gets, confirms) => {
  const changes = open([{ ...everyone, role: previousRole }]);
  await userEvent.selectOptions(screen.getByLabelText("Role of Everyone"), gets);
  expect(screen.queryByRole("dialog") !== null).toBe(confirms);
  expect(changes).toEqual(confirms ? [] : [`Everyone ${gets}`]);
});

it("removes without confirmation, adds other groups directly", async () => {
  const changes = open([{ ...everyone, role: "use" }]);
  await userEvent.click(screen.getByRole("button", { name: "Remove Everyone" }));
  await add("staff");
  await waitFor(() => expect(changes).toEqual(["Everyone ", "staff use"]));
  expect(screen.getByText("Group, 3 members")).toBeVisible();
});

it("returns to the weakest role after each addition", async () => {
  const changes = open([]);
  await userEvent.selectOptions(screen.getByLabelText("Role"), "admin");
  await add("staff");
  await waitFor(() => expect(changes).toEqual(["staff admin"]));
  expect(screen.getByLabelText("Role")).toHaveValue("use");
});

it.each([
  [[], "added"],
  [[{ ...staff, role: "use" }], "removed"],
])("announces a saved change of %j", async (entries, done) => {
  open(entries);
  if (entries.length === 0) await add("staff");
  else await userEvent.click(screen.getByRole("button", { name: "Remove staff" }));
  expect(await screen.findByText(`Access of "staff" ${done} successfully.`)).toBeVisible();
});

it("announces no success of a rejected change", async () => {
  const changes = open([{ ...staff, role: "admin" }], false);
  await userEvent.selectOptions(screen.getByLabelText("Role of staff"), "use");
  await waitFor(() => expect(changes).toEqual(["staff use"]));
  expect(screen.queryByText(/updated successfully/)).toBeNull();
});
