import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { AgentUpgrade } from "../../../api/types";
import { Refusal, visit, type Answers } from "../../../test/world";
import type { Machine } from "./fleet";
import { progressOf, upgradeMachine, type UpgradeProgress } from "./upgrade";
import { UpgradeDialog } from "./UpgradeDialog";

const machine = (name: string) =>
  ({
    workspace: { id: name, name, owner_name: "ana" },
    agent: { id: `agent-${name}`, name: "main", version: "v1" },
    lights: null,
  }) as unknown as Machine;
const upgrade = (state: string, changes: object = {}) =>
  ({ state, detail: "why", version: "v1+a", server_version: "v2+b", ...changes }) as AgentUpgrade;

it.each([
  [upgrade("waiting"), "Waiting for the end of: why", false],
  [upgrade("watching", { version: "v2+x" }), "Upgraded: v2+x", true],
  [upgrade("watching"), "Keeps v1+a, which is newer than the server", true],
  [upgrade("failed"), "Failed, and retried later: why", true],
  [upgrade("refused"), "The server’s program was refused: why", true],
  [upgrade("disabled"), "It does not upgrade itself. Run its attach command again.", true],
])("%j is %s", (state, text, ended) => expect(progressOf(state)).toMatchObject({ text, ended }));

async function follow(answers: Answers) {
  const page = visit([{ path: "/", element: null }], "/", answers);
  const seen: UpgradeProgress[] = [];
  await upgradeMachine(machine("box"), {
    onProgress: (progress) => seen.push(progress),
    signal: new AbortController().signal,
    pause: () => Promise.resolve(),
  });
  return { texts: seen.map(({ text }) => text), requests: page.requests.length };
}
const OF_BOX = "/api/v2/workspaceagents/agent-box/upgrade";

it("follows an agent through its restart", async () => {
  const states = [
    upgrade("downloading"),
    new Refusal(400, 'Agent state is "disconnected".'),
    upgrade("watching", { version: "v2" }),
  ];
  const { texts } = await follow({
    [`POST ${OF_BOX}`]: upgrade("checking"),
    [`GET ${OF_BOX}`]: () => states.shift(),
  });
  expect(texts).toEqual(["Requested", "Downloading", "Restarting", "Upgraded: v2"]);
});

it("gives up on an agent that does not return", async () => {
  const { texts, requests } = await follow({
    [`POST ${OF_BOX}`]: upgrade("checking"),
    [`GET ${OF_BOX}`]: new Refusal(400, "It is gone."),
  });
  expect(texts.at(-1)).toBe("It did not return: It is gone.");
  expect(requests).toBe(61);
});

it("shows the progress and the failure of each machine", async () => {
  visit(
    [
      {
        path: "/",
        element: (
          <UpgradeDialog
            machines={[machine("box"), machine("old")]}
            onClose={() => undefined}
            pollMs={1}
          />
        ),
      },
    ],
    "/",
    {
      [`POST ${OF_BOX}`]: upgrade("checking"),
      [`GET ${OF_BOX}`]: upgrade("waiting", { detail: "SSH connections" }),
      "POST /api/v2/workspaceagents/agent-old/upgrade": new Refusal(409, "It is too old."),
    },
  );
  const dialog = within(await screen.findByRole("dialog", { name: "Upgrade 2 agents" }));
  const [box, old] = dialog.getAllByRole("listitem");
  expect(box).toHaveTextContent("boxv1");
  await userEvent.click(dialog.getByRole("button", { name: "Upgrade" }));
  expect(await dialog.findByText("Waiting for the end of: SSH connections")).toBeVisible();
  expect(old).toHaveTextContent("It is too old.");
  expect(dialog.getByRole("status")).toHaveTextContent("1 of 2 ended, 1 failed.");
});
