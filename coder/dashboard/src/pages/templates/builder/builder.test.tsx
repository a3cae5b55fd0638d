import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import type { TemplateBuilderModule } from "../../../api/types";
import { Refusal, visit } from "../../../test/world";
import { writeTar } from "../tar";
import { BuilderPage } from "./BuilderPage";
import { byCategory, conflictOf, requestOf, startValues } from "./composition";

const variable = (name: string, extra = {}) => ({
  name,
  type: "string" as const,
  description: `About ${name}`,
  required: false,
  sensitive: false,
  ...extra,
});
const base = (id: string, variables = [variable("image", { default: "alpine" })]) => ({
  id,
  name: `Base ${id}`,
  description: "",
  icon: "",
  os: "linux",
  variables,
  prerequisites: "## Prerequisites\n\nA daemon.",
});
const module = (id: string, extra: Partial<TemplateBuilderModule> = {}): TemplateBuilderModule => ({
  id,
  display_name: `Module ${id}`,
  description: "Does things",
  icon: "",
  category: "IDE",
  version: "1.0.0",
  compatible_os: ["linux"],
  conflicts_with: [],
  variables: [],
  ...extra,
});
const MODULES = [
  module("clone", {
    category: "Source Control",
    variables: [variable("branch", { default: "" }), variable("url", { required: true })],
  }),
  module("code", { conflicts_with: ["web"] }),
  module("web"),
];
const COMPOSED = "/api/v2/templatebuilder/compose";

function open(composed: unknown) {
  vi.spyOn(window, "scrollTo").mockImplementation(() => undefined);
  return visit(
    [{ path: "/templates/new/builder", Component: BuilderPage }],
    "/templates/new/builder",
    {
      "GET /api/v2/templatebuilder/bases": { bases: [base("docker"), base("scratch", [])] },
      "GET /api/v2/templatebuilder/modules": { modules: MODULES },
      [`POST ${COMPOSED}`]: composed,
      "POST /api/v2/files": { hash: "f1" },
      "GET /api/v2/organizations": [{ id: "o", name: "coder", display_name: "", is_default: true }],
    },
  );
}
const click = async (name: string) => userEvent.click(await screen.findByRole("button", { name }));

it("composes, shows the files and continues with the form", async () => {
  const page = open(
    writeTar([{ path: "main.tf", data: new TextEncoder().encode("# composed\n") }]),
  );
  await userEvent.click(await screen.findByRole("radio", { name: /Base scratch/ }));
  await click("Choose modules");
  expect(screen.getByRole("group", { name: "Step 2 of 4: Modules" })).toHaveFocus();
  await userEvent.click(await screen.findByRole("checkbox", { name: "Module code" }));
  expect(screen.getByRole("checkbox", { name: "Module web" })).toBeDisabled();
  await userEvent.click(screen.getByRole("checkbox", { name: "Module clone" }));
  await click("Set parameters");
  await userEvent.type(await screen.findByLabelText("url"), "https://git.test/a.git");
  await click("Review Terraform");
  const files = await screen.findByRole("list", { name: "Files" });
  expect(within(files).getByText("main.tf")).toBeVisible();
  await click("Continue");
  expect(await screen.findByDisplayValue("Base scratch")).toBeVisible();
  expect(page.sent[0]).toEqual({
    method: "POST",
    path: COMPOSED,
    body: {
      base_template_id: "scratch",
      base_variable_values: {},
      modules: [
        { id: "code", variables: {} },
        { id: "clone", variables: { url: "https://git.test/a.git" } },
      ],
    },
  });
  expect(page.sent[1]?.path).toBe("/api/v2/files");
  await click("Back to the files");
  expect(await screen.findByRole("list", { name: "Files" })).toBeVisible();
});

it("shows the server's validations at their fields", async () => {
  open(
    new Refusal(400, "The template cannot be composed.", [
      { field: "base_variable_values.image", detail: "Must not contain a NUL character." },
    ]),
  );
  await click("Choose modules");
  await click("Set parameters");
  await click("Review Terraform");
  expect(await screen.findByText("Must not contain a NUL character.")).toBeVisible();
  expect(screen.getByLabelText("image")).toHaveFocus();
});

it("says that the builder is disabled", async () => {
  visit([{ path: "/", Component: BuilderPage }], "/", {
    "GET /api/v2/templatebuilder/bases": new Refusal(403, "The template builder is disabled."),
  });
  expect(await screen.findByText("The template builder is disabled.")).toBeVisible();
});

it("sends only values that differ from the defaults", () => {
  const values = startValues(base("docker"), MODULES, { "modules.clone.url": "u" });
  expect(values).toEqual({
    "base_variable_values.image": "alpine",
    "modules.clone.branch": "",
    "modules.clone.url": "u",
  });
  expect(requestOf(base("docker"), MODULES.slice(0, 1), values)).toEqual({
    base_template_id: "docker",
    base_variable_values: {},
    modules: [{ id: "clone", variables: { url: "u" } }],
  });
});

it("does not send a cleared field, which shows its default", async () => {
  const page = open(writeTar([{ path: "main.tf", data: new Uint8Array() }]));
  await click("Choose modules");
  await click("Set parameters");
  const image = await screen.findByLabelText("image");
  await userEvent.clear(image);
  expect(image).toHaveAttribute("placeholder", "alpine");
  await click("Review Terraform");
  await screen.findByRole("list", { name: "Files" });
  expect(page.sent[0]?.body).toEqual({
    base_template_id: "docker",
    base_variable_values: {},
    modules: [],
  });
});

it("finds conflicts in both directions and groups modules", () => {
  const [clone, code, web] = MODULES as [
    TemplateBuilderModule,
    TemplateBuilderModule,
    TemplateBuilderModule,
  ];
  expect(conflictOf(web, [code])).toBe(code);
  expect(conflictOf(code, [web, code])).toBe(web);
  expect(conflictOf(clone, MODULES)).toBeUndefined();
  expect(byCategory(MODULES).map(([category]) => category)).toEqual(["Source Control", "IDE"]);
});
