import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Link } from "react-router";
import { expect, it, vi } from "vitest";

import type { AuthorizationCheck } from "../../api/types";
import { FakeSocket, Refusal, visit } from "../../test/world";
import { NewTemplatePage } from "./NewTemplatePage";
import { writeTar } from "./tar";

const version = (status: string) => ({
  id: "v1",
  name: "first",
  organization_id: "o",
  job: { id: "j", status, file_id: "f", tags: {}, queue_position: 1, queue_size: 1, error: "" },
});

function open(initial = "pending") {
  let state = initial;
  const page = visit(
    [
      {
        path: "/templates/new",
        element: (
          <>
            <NewTemplatePage />
            <Link to="/elsewhere">Away</Link>
          </>
        ),
      },
      { path: "/elsewhere", element: "elsewhere" },
    ],
    "/templates/new?exampleId=scratch",
    {
      "GET /api/v2/templates/examples": [
        { id: "scratch", name: "Scratch", description: "", icon: "" },
      ],
      "GET /api/v2/organizations": [{ id: "o", name: "coder", display_name: "", is_default: true }],
      "POST /api/v2/organizations/o/templateversions": () => version(state),
      "GET /api/v2/templateversions/v1": () => version(state),
      "GET /api/v2/organizations/o/provisionerjobs/j/why": {
        verdict: "nobody",
        summary: "Nobody.",
        remedy: null,
        daemons: [],
      },
      "PATCH /api/v2/templateversions/v1/cancel": () => {
        state = "canceled";
        return {};
      },
    },
  );
  return page;
}
const CANCEL = { method: "PATCH", path: "/api/v2/templateversions/v1/cancel", body: undefined };
const start = async () => {
  await userEvent.click(await screen.findByTestId("create"));
  return screen.findByRole("button", { name: "Cancel import" });
};

it("cancels the import and creates no template", async () => {
  const page = open();
  await userEvent.click(await start());
  expect(
    await screen.findByText("The import was canceled. No template was created.", undefined, {
      timeout: 3000,
    }),
  ).toBeVisible();
  expect(page.sent.map((request) => request.path)).toEqual([
    "/api/v2/organizations/o/templateversions",
    CANCEL.path,
  ]);
  expect(screen.getByTestId("create")).toBeEnabled();
});

it("confirms leaving, which cancels the import", async () => {
  const page = open();
  await start();
  await userEvent.click(screen.getByText("Away"));
  await userEvent.click(await screen.findByRole("button", { name: "Cancel import" }));
  expect(await screen.findByText("elsewhere")).toBeVisible();
  await waitFor(() => expect(page.sent.at(-1)).toEqual(CANCEL));
});

it("scrolls to the top after choosing an example", async () => {
  const scrolled = vi.spyOn(window, "scrollTo");
  open();
  await screen.findByTestId("create");
  expect(scrolled).toHaveBeenCalledWith(0, 0);
});

it("shows a failed import's log errors", async () => {
  open("failed");
  await userEvent.click(await screen.findByTestId("create"));
  expect(await screen.findByText("The template could not be imported")).toBeVisible();
  await act(async () => {
    for (const one of FakeSocket.opened)
      one.says([{ id: 1, log_level: "error", output: "Error: Unclosed configuration block" }]);
  });
  expect(await screen.findByRole("list", { name: "First errors of the log" })).toHaveTextContent(
    "Error: Unclosed configuration block",
  );
});

it("offers permitted organizations, the copy's own first", async () => {
  const organization = (id: string, is_default = false) => ({
    id,
    name: id,
    display_name: "",
    is_default,
  });
  const page = visit(
    [{ path: "/templates/new", Component: NewTemplatePage }],
    "/templates/new?fromTemplate=t",
    {
      "GET /api/v2/organizations": [
        organization("closed", true),
        organization("open"),
        organization("home"),
      ],
      "GET /api/v2/templates/t": {
        id: "t",
        name: "box",
        display_name: "",
        description: "",
        icon: "",
        organization_id: "home",
        active_version_id: "v0",
      },
      "GET /api/v2/templateversions/v0": version("succeeded"),
      "POST /api/v2/authcheck": ({ checks }: { checks: Record<string, AuthorizationCheck> }) =>
        Object.fromEntries(
          Object.entries(checks).map(([name, check]) => [
            name,
            check.object.organization_id !== "closed",
          ]),
        ),
      "POST /api/v2/organizations/home/templateversions": () => version("pending"),
      "GET /api/v2/templateversions/v1": () => version("pending"),
      "GET /api/v2/organizations/o/provisionerjobs/j/why": {
        verdict: "nobody",
        summary: "Nobody.",
        remedy: null,
        daemons: [],
      },
    },
  );
  const field = await screen.findByRole("combobox", { name: "Organization" });
  await waitFor(() =>
    expect([...field.querySelectorAll("option")].map((option) => option.value)).toEqual([
      "open",
      "home",
    ]),
  );
  expect(field).toHaveValue("home");
  await start();
  expect(page.sent.map((request) => request.path)).toEqual([
    "/api/v2/organizations/home/templateversions",
  ]);
});

it("can be left in a browser whose scrolling returns a promise", async () => {
  vi.spyOn(window, "scrollTo").mockImplementation(() => Promise.resolve() as unknown as undefined);
  open();
  await screen.findByTestId("create");
  await userEvent.click(screen.getByRole("link", { name: "Away" }));
  expect(await screen.findByText("elsewhere")).toBeVisible();
});

it("copies into the original's organization, even when quick", async () => {
  const organization = (id: string, is_default = false) => ({
    id,
    name: id,
    display_name: "",
    is_default,
  });
  let answer = (): void => undefined;
  const answered = new Promise<void>((done) => {
    answer = done;
  });
  const page = visit(
    [{ path: "/templates/new", Component: NewTemplatePage }],
    "/templates/new?fromTemplate=t",
    {
      "GET /api/v2/organizations": [organization("usual", true), organization("home")],
      "GET /api/v2/templates/t": {
        id: "t",
        name: "box",
        display_name: "",
        description: "",
        icon: "",
        organization_id: "home",
        active_version_id: "v0",
      },
      "GET /api/v2/templateversions/v0": version("succeeded"),
      "POST /api/v2/authcheck": ({ checks }: { checks: Record<string, AuthorizationCheck> }) => {
        const all = Object.fromEntries(Object.keys(checks).map((name) => [name, true]));
        return "home" in checks ? answered.then(() => all) : all;
      },
      "POST /api/v2/organizations/home/templateversions": () => version("pending"),
      "GET /api/v2/templateversions/v1": () => version("pending"),
      "GET /api/v2/organizations/o/provisionerjobs/j/why": {
        verdict: "nobody",
        summary: "Nobody.",
        remedy: null,
        daemons: [],
      },
    },
  );
  await userEvent.click(await screen.findByTestId("create"));
  answer();
  await waitFor(() =>
    expect(page.sent.map((request) => request.path)).toEqual([
      "/api/v2/organizations/home/templateversions",
    ]),
  );
});

it("explains why a template cannot be copied", async () => {
  visit([{ path: "/templates/new", Component: NewTemplatePage }], "/templates/new?fromTemplate=t", {
    "GET /api/v2/organizations": [],
    "GET /api/v2/templates/t": new Refusal(404, "There is no such template."),
  });
  expect(await screen.findByText("There is no such template.")).toBeVisible();
  expect(screen.queryByLabelText("Loading")).toBeNull();
});

it("accepts archives by extension, in any case", async () => {
  const page = visit([{ path: "/templates/new", Component: NewTemplatePage }], "/templates/new", {
    "GET /api/v2/organizations": [],
    "GET /api/v2/templates/examples": [],
    "POST /api/v2/files": { hash: "h" },
  });
  const field = await screen.findByTestId("file-upload");
  const choose = (name: string) =>
    userEvent.upload(field, new File(["x"], name), { applyAccept: false });
  await choose("notes.constructor");
  expect(page.sent).toEqual([]);
  await choose("My Box.ZIP");
  expect(await screen.findByDisplayValue("my-box")).toBeVisible();
  expect(page.sent.map((request) => request.path)).toEqual(["/api/v2/files"]);
});

it("prefills names from the archive's README", async () => {
  const readme = new TextEncoder().encode(
    "---\ndisplay_name: A Box\ndescription: Runs somewhere\nicon: /icon/docker.png\n---\n# Box\n",
  );
  visit([{ path: "/templates/new", Component: NewTemplatePage }], "/templates/new", {
    "GET /api/v2/organizations": [],
    "GET /api/v2/templates/examples": [],
    "POST /api/v2/files": { hash: "h" },
    "GET /api/v2/files/h": writeTar([
      { path: "main.tf", data: new Uint8Array() },
      { path: "README.md", data: readme },
    ]),
  });
  await userEvent.upload(await screen.findByTestId("file-upload"), new File(["x"], "box.tar"));
  expect(await screen.findByDisplayValue("A Box")).toBeVisible();
  expect(screen.getByDisplayValue("Runs somewhere")).toBeVisible();
  expect(screen.getByDisplayValue("/icon/docker.png")).toBeVisible();
});
