import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it } from "vitest";

import { MappingEditor, readMapping, withoutPair, withPair, type Mapping } from "./MappingEditor";

describe("mapping", () => {
  it.each([[null], [undefined], ["x"]])("treats %j as empty", (value) =>
    expect(readMapping(value)).toEqual({}),
  );
  it("adds a pair once", () =>
    expect(withPair(withPair({}, "dev", "g1"), "dev", "g1")).toEqual({ dev: ["g1"] }));
  it("removes a name with its last target", () => {
    const mapping = withPair(withPair({}, "dev", "g1"), "dev", "g2");
    expect(withoutPair(mapping, "dev", "g1")).toEqual({ dev: ["g2"] });
    expect(withoutPair(withoutPair(mapping, "dev", "g1"), "dev", "g2")).toEqual({});
  });
});

it("adds and removes by name", async () => {
  const Example = () => {
    const [value, setValue] = useState<Mapping>({ ops: ["g1"] });
    return (
      <MappingEditor
        noun="group"
        testId="group"
        nameLabel="IdP group"
        targetLabel="Group"
        value={value}
        onChange={setValue}
        targets={[
          { value: "g1", text: "Operations" },
          { value: "g2", text: "Developers" },
        ]}
      />
    );
  };
  render(<Example />);
  await userEvent.type(screen.getByLabelText("IdP group"), "devs");
  await userEvent.click(screen.getByRole("combobox", { name: "Group" }));
  await userEvent.click(screen.getByRole("option", { name: "Developers" }));
  await userEvent.click(screen.getByRole("button", { name: "Add IdP group" }));
  expect(screen.getByTestId("group-devs")).toHaveTextContent("devsDevelopers");
  await userEvent.click(
    within(screen.getByTestId("group-ops")).getByRole("button", { name: "Delete" }),
  );
  expect(screen.queryByTestId("group-ops")).toBeNull();
});
