import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { ApiError } from "../../api/client";
import { Button } from "../Button";
import { Failure } from "../Failure";
import { TextField } from "./Field";
import { useForm } from "./form";
import { RULES } from "./rules";

function Example({ send }: { send: (values: { name: string }) => Promise<unknown> }) {
  const form = useForm({ name: "" }, send, (values) =>
    values.name === "" ? { name: "Say a name." } : {},
  );
  return (
    <form onSubmit={form.submit}>
      {form.error ? <Failure error={form.error} /> : null}
      <TextField
        label="Name"
        value={form.values.name}
        problem={form.problem("name")}
        onChange={(value) => form.set("name", value)}
      />
      <Button type="submit" busy={form.busy}>
        Save
      </Button>
    </form>
  );
}

it("validates before it submits", async () => {
  const send = vi.fn(async () => undefined);
  render(<Example send={send} />);
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  expect(screen.getByLabelText("Name")).toHaveAccessibleDescription("Say a name.");
  expect(send).not.toHaveBeenCalled();
});

it("keeps input and shows the error at its field", async () => {
  const send = () =>
    Promise.reject(
      new ApiError(409, {
        message: "It exists.",
        validations: [{ field: "name", detail: "Choose another name." }],
      }),
    );
  render(<Example send={send} />);
  await userEvent.type(screen.getByLabelText("Name"), "dev");
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() =>
    expect(screen.getByLabelText("Name")).toHaveAccessibleDescription(
      "It exists. Choose another name.",
    ),
  );
  expect(screen.getByLabelText("Name")).toHaveValue("dev");
  expect(screen.getAllByText(/It exists/)).toHaveLength(1);
  expect(screen.getByLabelText("Name")).toHaveFocus();
  expect(screen.getByRole("button", { name: "Save" })).toBeEnabled();
});

it("explains the rule once and focuses the field", async () => {
  const seen = vi.spyOn(Element.prototype, "scrollIntoView");
  const detail = 'Validation failed for tag "workspace_name" with value: "my desk PC"';
  render(
    <Example
      send={() =>
        Promise.reject(
          new ApiError(400, {
            message: "Validation failed.",
            validations: [{ field: "name", detail }],
          }),
        )
      }
    />,
  );
  await userEvent.type(screen.getByLabelText("Name"), "my desk PC");
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() =>
    expect(screen.getByLabelText("Name")).toHaveAccessibleDescription(RULES["workspace_name"]),
  );
  expect(screen.queryByText(/Validation failed/)).toBeNull();
  expect(screen.getByLabelText("Name")).toHaveFocus();
  expect(seen.mock.contexts).toContain(screen.getByLabelText("Name"));
});

it("shows an error of an unknown field", async () => {
  render(
    <Example
      send={() =>
        Promise.reject(
          new ApiError(400, {
            message: "No.",
            validations: [{ field: "icon", detail: "It is too large." }],
          }),
        )
      }
    />,
  );
  await userEvent.type(screen.getByLabelText("Name"), "dev");
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("icon: It is too large.")).toBeVisible();
});

it("shows the error of a hidden field above the form", async () => {
  function Hidden() {
    const form = useForm({ name: "x" }, () =>
      Promise.reject(
        new ApiError(400, {
          message: "No.",
          validations: [{ field: "name", detail: "It is too long." }],
        }),
      ),
    );
    return (
      <form onSubmit={form.submit}>
        {form.error ? <Failure error={form.error} /> : null}
        <Button type="submit">Save</Button>
      </form>
    );
  }
  render(<Hidden />);
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("name: It is too long.")).toBeVisible();
});
