import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { ApiError } from "../../api/client";
import { Button } from "../Button";
import { Failure } from "../Failure";
import { TextField } from "./Field";
import { useForm } from "./form";

function Example({ send }: { send: (values: { name: string }) => Promise<unknown> }) {
  const form = useForm({ name: "" }, send, (values) => (values.name === "" ? { name: "Say a name." } : {}));
  return (
    <form onSubmit={form.submit}>
      {form.error ? <Failure error={form.error} /> : null}
      <TextField label="Name" value={form.values.name} problem={form.problem("name")} onChange={(value) => form.set("name", value)} />
      <Button type="submit" busy={form.busy}>Save</Button>
    </form>
  );
}

it("checks before it sends", async () => {
  const send = vi.fn(async () => undefined);
  render(<Example send={send} />);
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  expect(screen.getByLabelText("Name")).toHaveAccessibleDescription("Say a name.");
  expect(send).not.toHaveBeenCalled();
});

it("keeps what was typed when the server refuses, and shows the reason at its field", async () => {
  const send = () => Promise.reject(new ApiError(409, { message: "It exists.", validations: [{ field: "name", detail: "Choose another name." }] }));
  render(<Example send={send} />);
  await userEvent.type(screen.getByLabelText("Name"), "dev");
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("It exists.")).toBeVisible();
  expect(screen.getByLabelText("Name")).toHaveValue("dev");
  expect(screen.getByLabelText("Name")).toHaveAccessibleDescription("Choose another name.");
  expect(screen.getByRole("button", { name: "Save" })).toBeEnabled();
});
