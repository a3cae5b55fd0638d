import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { ButtonCheckbox, Checkbox, Switch } from "./Toggle";

it.each([
  ["checkbox", Checkbox],
  ["checkbox", ButtonCheckbox],
  ["switch", Switch],
] as const)("a %s has its id, its test id, its label and its hint", (role, Toggle) => {
  render(
    <Toggle
      id="alarm"
      testId="alarm-toggle"
      label="Alarm"
      hint="Rings."
      checked
      onChange={() => undefined}
    />,
  );
  const toggle = screen.getByRole(role, { name: "Alarm", description: "Rings.", checked: true });
  expect(toggle).toHaveAttribute("id", "alarm");
  expect(toggle).toHaveAttribute("data-testid", "alarm-toggle");
});
