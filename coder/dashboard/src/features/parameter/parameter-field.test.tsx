import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import type { PreviewParameter } from "../../api/types";
import { ParameterField } from "./ParameterField";

const PARAMETER = {
  name: "size",
  display_name: "Size",
  description: "In GB.",
  type: "string",
  icon: "",
  mutable: true,
  ephemeral: false,
  required: false,
  options: ["s", "l"].map((value) => ({
    name: value,
    description: "",
    icon: "",
    value: { value, valid: true },
  })),
  validations: [],
  styling: {},
  diagnostics: [
    { severity: "error", summary: "Too large", detail: "At most 9.", extra: { code: "" } },
    { severity: "warning", summary: "Costs more", detail: "", extra: { code: "" } },
  ],
} as unknown as PreviewParameter;

it.each([
  ["input", "textbox"],
  ["textarea", "textbox"],
  ["dropdown", "combobox"],
  ["multi-select", "combobox"],
  ["tag-select", "textbox"],
  ["slider", "slider"],
  ["checkbox", "checkbox"],
  ["switch", "switch"],
  ["radio", "group"],
])("an error of the form type %s describes its control", (type, role) => {
  const parameter = { ...PARAMETER, form_type: type } as PreviewParameter;
  render(<ParameterField parameter={parameter} value="" onChange={() => undefined} />);
  const control = screen.getByRole(role);
  expect(control).toHaveAccessibleDescription("In GB. Too large: At most 9.");
  expect(screen.getByRole("alert")).toHaveTextContent("Too large: At most 9.");
  expect(screen.getByText("Costs more")).toBeVisible();
  // A group of radio buttons has no such attribute.
  if (role !== "group") expect(control).toBeInvalid();
});
