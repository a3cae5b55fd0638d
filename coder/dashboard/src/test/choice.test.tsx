import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { useChoice } from "../ui/forms/choice";
import { RolePicker } from "../features/person/RolePicker";
import { Toasts } from "../ui/toast";

const role = (name: string) => ({
  name,
  display_name: name,
  organization_id: "",
  assignable: true,
  built_in: true,
  site_permissions: [],
  user_permissions: [],
  organization_permissions: [],
  organization_member_permissions: [],
});
const ROLES = [role("auditor"), role("owner")];

/** A server that answers when the test decides. */
function world() {
  let values: string[] = [];
  const sent: string[][] = [];
  const answers: ((refused?: Error) => void)[] = [];
  const send = (next: string[]) =>
    new Promise<void>((done, refuse) => {
      sent.push(next);
      answers.push((refused) => {
        if (refused) refuse(refused);
        else {
          values = next;
          done();
        }
      });
    });
  function Example() {
    const now = useQuery({ queryKey: ["roles"], queryFn: async () => values }).data;
    const { value, choose } = useChoice(now ?? [], {
      send,
      seen: ["roles"],
      failed: "Not changed",
    });
    return now ? (
      <>
        <p data-testid="now">{value.join()}</p>
        <RolePicker name="ben" chosen={value} roles={ROLES} onChange={choose} />
        <Toasts />
      </>
    ) : null;
  }
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Example />
    </QueryClientProvider>,
  );
  return { sent, answers };
}

it("builds the second of two quick clicks on the first", async () => {
  const { sent, answers } = world();
  await userEvent.click(await screen.findByRole("button", { name: "Edit user roles" }));
  await userEvent.click(screen.getByRole("checkbox", { name: "auditor" }));
  await userEvent.click(screen.getByRole("checkbox", { name: "owner" }));
  expect(screen.getByTestId("now")).toHaveTextContent("auditor,owner");
  expect(sent).toEqual([["auditor"], ["auditor", "owner"]]);
  answers[0]?.();
  answers[1]?.();
  await waitFor(() => expect(screen.getByTestId("now")).toHaveTextContent("auditor,owner"));
});

it("rolls back a rejection and shows the reason", async () => {
  const { answers } = world();
  await userEvent.click(await screen.findByRole("button", { name: "Edit user roles" }));
  await userEvent.click(screen.getByRole("checkbox", { name: "owner" }));
  expect(screen.getByRole("checkbox", { name: "owner" })).toBeChecked();
  answers[0]?.(new Error("Not by you."));
  await waitFor(() => expect(screen.getByRole("checkbox", { name: "owner" })).not.toBeChecked());
  expect(await screen.findByText("Not by you.")).toBeVisible();
});
