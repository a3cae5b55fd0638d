import { focusManager } from "@tanstack/react-query";
import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { FakeSocket, Refusal, visit, type Answers } from "../../test/world";
import { EditorPage } from "./EditorPage";
import { readTar } from "./tar";
import { defaults, bytesOf, version, template } from "../../test/editor-server";

// CodeMirror measures text, which jsdom cannot do: a plain box replaces it.
vi.mock("../../ui/text/CodeEditor", () => ({
  default: ({
    text,
    onChange,
    label,
    marks,
    target,
  }: {
    text: string;
    onChange: (text: string) => void;
    label: string;
    marks: { line: number; message: string }[];
    target: { line: number } | null;
  }) => (
    <>
      <textarea
        aria-label={label}
        value={text}
        onChange={(event) => onChange(event.target.value)}
      />
      <p>{`marks: ${marks.map(({ line, message }) => `${line} ${message}`).join("; ")}`}</p>
      <p>{`at line ${target?.line ?? "-"}`}</p>
    </>
  ),
}));
const open = (answers: Answers = {}) =>
  visit(
    [
      { path: "/templates/:template/versions/:version/edit", Component: EditorPage },
      { path: "/templates/*", element: "the template" },
    ],
    "/templates/docker/versions/v1-name/edit",
    { ...defaults, ...answers },
  );

const publish = () => screen.getByRole("button", { name: "Publish" });
const isPublishable = () => expect(publish()).not.toHaveAttribute("aria-disabled");

async function change() {
  const box = await screen.findByRole("textbox");
  await userEvent.clear(box);
  await userEvent.type(box, "# two");
  return userEvent.click(screen.getByRole("button", { name: "Build" }));
}

it("builds all files with the previous version's tags", async () => {
  const page = open();
  await waitFor(() => expect(publish()).toHaveAttribute("aria-disabled", "true"));
  await change();
  await waitFor(isPublishable);
  const [sent, created] = page.sent;
  const files = readTar(await bytesOf(sent?.body as Blob));
  expect(files.map((file) => [file.path, new TextDecoder().decode(file.data)])).toEqual([
    ["main.tf", "# two"],
    ["README.md", "# Docs"],
  ]);
  expect(created?.body).toMatchObject({
    template_id: "t",
    file_id: "f2",
    tags: { gpu: "a100", scope: "organization" },
  });
});

it("builds with changed tags", async () => {
  const page = open();
  await userEvent.click(await screen.findByRole("button", { name: /^Expand provisioner tags/ }));
  const panel = within(await screen.findByRole("dialog", { name: "Provisioner tags" }));
  expect(panel.queryByText("scope=organization")).toBeNull(); // every version has it, so it is not shown
  await userEvent.click(panel.getByRole("button", { name: "Remove tag gpu" }));
  for (const [key, why] of [
    ["", "Enter a key."],
    ["scope", "The server sets this tag."],
  ] as const) {
    if (key !== "") await userEvent.type(panel.getByLabelText("Key"), key);
    await userEvent.click(panel.getByRole("button", { name: "Add tag" }));
    expect(panel.getByText(why)).toBeVisible();
  }
  await userEvent.clear(panel.getByLabelText("Key"));
  await userEvent.type(panel.getByLabelText("Key"), "os");
  await userEvent.type(panel.getByLabelText("Value"), "linux");
  await userEvent.click(panel.getByRole("button", { name: "Add tag" }));
  expect(panel.getByText("os=linux")).toBeVisible();
  await userEvent.keyboard("{Escape}");
  expect(screen.getByText("Unbuilt changes")).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Build" }));
  await waitFor(() =>
    expect(page.sent.at(-1)?.body).toMatchObject({ tags: { os: "linux", scope: "organization" } }),
  );
  expect((page.sent.at(-1)?.body as { tags: object }).tags).not.toHaveProperty("gpu");
});

it("publishes with the entered name and message", async () => {
  const page = open();
  await change();
  await waitFor(isPublishable);
  await userEvent.click(publish());
  const dialog = within(await screen.findByRole("dialog"));
  await userEvent.clear(dialog.getByLabelText(/Version name/));
  await userEvent.type(dialog.getByLabelText(/Version name/), "second");
  await userEvent.type(dialog.getByLabelText("Message"), "faster");
  await userEvent.click(dialog.getByRole("button", { name: "Publish" }));
  await screen.findByText("the template");
  expect(page.sent.slice(2)).toEqual([
    {
      method: "PATCH",
      path: "/api/v2/templateversions/v2",
      body: { name: "second", message: "faster" },
    },
    { method: "PATCH", path: "/api/v2/templates/t/versions", body: { id: "v2" } },
  ]);
});

it("shows why a build failed, and blocks publishing", async () => {
  open({
    "GET /api/v2/templateversions/v2": version("v2", "failed", { error: "main.tf line 1: no" }),
  });
  await change();
  expect(await screen.findByText("main.tf line 1: no")).toBeVisible();
  expect(publish()).toHaveAttribute("aria-disabled", "true");
});

it("shows waiting and running builds, and cancels them", async () => {
  let state = "pending";
  const page = open({
    "GET /api/v2/templateversions/v2": () => version("v2", state),
    "GET /api/v2/organizations/o/provisionerjobs/job-v2/why": {
      summary: "No daemon has gpu=a100.",
      remedy: null,
      daemons: [],
    },
    "PATCH /api/v2/templateversions/v2/cancel": () => {
      state = "canceled";
      return {};
    },
  });
  await change();
  expect(await screen.findByText("No daemon has gpu=a100.")).toBeVisible();
  state = "running";
  expect(await screen.findByText("v2-name: running", undefined, { timeout: 3000 })).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Cancel build" }));
  await waitFor(() => expect(page.sent.at(-1)?.path).toBe("/api/v2/templateversions/v2/cancel"));
  expect(await screen.findByText("v2-name: canceled", undefined, { timeout: 3000 })).toBeVisible();
});

it("confirms discarding changes", async () => {
  open();
  await userEvent.type(await screen.findByRole("textbox"), "x");
  await userEvent.click(screen.getByRole("link", { name: "Close" }));
  expect(await screen.findByText("Discard unbuilt changes?")).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Discard changes" }));
  expect(await screen.findByText("the template")).toBeVisible();
});

it("shows a failed build's log errors", async () => {
  open({ "GET /api/v2/templateversions/v2": version("v2", "failed", { error: "exit status 1" }) });
  expect(await screen.findByRole("button", { name: "Publish" })).toHaveAttribute(
    "title",
    "This version is already active. Change and build it to publish a new one.",
  );
  await change();
  expect(await screen.findByText("exit status 1")).toBeVisible();
  await act(async () => {
    for (const one of FakeSocket.opened)
      one.says([{ id: 1, log_level: "error", output: "Error: Unclosed configuration block" }]);
  });
  expect(
    within(await screen.findByRole("list", { name: "Problems" })).getByText(
      "Unclosed configuration block",
    ),
  ).toBeVisible();
  expect(publish()).toHaveAttribute("title", "Build your changes before you publish.");
});

it("has a heading without update permission", async () => {
  open({
    "POST /api/v2/authcheck": ({ checks }: { checks: object }) =>
      Object.fromEntries(Object.keys(checks).map((name) => [name, false])),
  });
  expect(
    await screen.findByRole("heading", {
      level: 1,
      name: "You can use this template but not change it",
    }),
  ).toBeVisible();
});

it("shows problems at their lines, linked from the list", async () => {
  open({ "GET /api/v2/templateversions/v2": version("v2", "failed", { error: "exit status 1" }) });
  await change();
  expect(await screen.findByText("exit status 1")).toBeVisible();
  const logOutput = [
    "Error: One",
    "on README.md line 3:",
    "Mend it.",
    "Error: Two",
    "on main.tf line 1, in x:",
    "Error: Three",
    "on modules/a.tf line 9:",
    "Error: Four",
    "Error: Five",
    "Error: Six",
  ];
  await act(async () => {
    for (const one of FakeSocket.opened)
      one.says(logOutput.map((output, index) => ({ id: index + 1, log_level: "error", output })));
  });
  const list = within(await screen.findByRole("list", { name: "Problems" }));
  expect(list.getAllByRole("listitem")).toHaveLength(6);
  expect(screen.getByText("marks: 1 Two")).toBeVisible();
  expect(list.queryByRole("button", { name: "modules/a.tf:9" })).toBeNull(); // not among the template's files
  await userEvent.click(list.getByRole("button", { name: "README.md:3" }));
  expect(screen.getByRole("textbox", { name: "README.md" })).toBeVisible();
  expect(screen.getByText("marks: 3 One: Mend it.")).toBeVisible();
  expect(screen.getByText("at line 3")).toBeVisible();
});

it("warns before publishing over another new version", async () => {
  const page = open({
    "GET /api/v2/templates/t": { ...template, active_version_id: "v9" },
    "GET /api/v2/templateversions/v9": {
      ...version("v9", "succeeded"),
      created_by: { username: "ben" },
      message: "a fix",
    },
  });
  await change();
  await waitFor(isPublishable);
  await userEvent.click(publish());
  const dialog = within(await screen.findByRole("dialog"));
  const before = page.sent.length;
  await userEvent.type(dialog.getByLabelText("Message"), "faster");
  await userEvent.click(dialog.getByRole("button", { name: "Publish" }));
  expect(await dialog.findByText("v9-name")).toBeVisible();
  expect(dialog.getByText(/by ben: a fix/)).toBeVisible();
  expect(dialog.getByRole("link", { name: "View changes" })).toHaveAttribute(
    "href",
    expect.stringContaining("/versions/v9-name"),
  );
  expect(page.sent).toHaveLength(before);
  await userEvent.click(dialog.getByLabelText(/Promote to active/));
  await userEvent.click(dialog.getByLabelText(/Promote to active/));
  await userEvent.click(dialog.getByRole("button", { name: "Publish anyway" }));
  await screen.findByText("the template");
  expect(page.sent.at(-1)).toEqual({
    method: "PATCH",
    path: "/api/v2/templates/t/versions",
    body: { id: "v2" },
  });
});

it("does not warn about a version that is not promoted", async () => {
  const page = open({ "GET /api/v2/templates/t": { ...template, active_version_id: "v9" } });
  await change();
  await waitFor(isPublishable);
  await userEvent.click(publish());
  const dialog = within(await screen.findByRole("dialog"));
  await userEvent.type(dialog.getByLabelText("Message"), "later");
  await userEvent.click(dialog.getByLabelText(/Promote to active/));
  await userEvent.click(dialog.getByRole("button", { name: "Publish" }));
  await screen.findByText("the template");
  expect(page.sent.at(-1)?.path).toBe("/api/v2/templateversions/v2");
});

it.each([
  [500, "The database is gone."],
  [404, "It was renamed."],
])("keeps input when a refresh is answered with %d", async (status, message) => {
  let answer: unknown = version("v1", "succeeded");
  const path = "GET /api/v2/organizations/coder/templates/docker/versions/v1-name";
  const page = open({ [path]: () => answer });
  await userEvent.type(await screen.findByRole("textbox"), " and more");
  answer = new Refusal(status, message);
  const requestsBefore = page.requests.filter((request) => request === path).length;
  await act(async () => {
    focusManager.setFocused(false);
    focusManager.setFocused(true);
    focusManager.setFocused(undefined);
  });
  await waitFor(() =>
    expect(page.requests.filter((request) => request === path).length).toBeGreaterThan(
      requestsBefore,
    ),
  );
  await waitFor(() => expect(page.fetching()).toBe(0));
  expect(screen.getByRole("textbox")).toHaveValue("# one and more");
});
