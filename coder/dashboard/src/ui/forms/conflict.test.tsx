import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it, vi } from "vitest";

import { FormProblems, useSettingsForm } from "./conflict";

interface Thing {
  name: string;
  seen: number;
}
const pick = ({ name }: Thing) => ({ name });

function Editor({
  load,
  send,
}: {
  load: () => Promise<Thing>;
  send: (values: { name: string }) => Promise<unknown>;
}) {
  const form = useSettingsForm(load, pick, { name: "old" }, send);
  return (
    <form onSubmit={form.submit}>
      <FormProblems form={form} />
      <input
        aria-label="Name"
        value={form.values.name}
        onChange={(event) => form.set("name", event.target.value)}
      />
      <button type="submit" disabled={form.busy}>
        Save
      </button>
    </form>
  );
}

async function save(text: string): Promise<void> {
  await userEvent.clear(screen.getByLabelText("Name"));
  await userEvent.type(screen.getByLabelText("Name"), text);
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
}

describe("form of an existing object", () => {
  it("is saved without a concurrent change, even after normalization", async () => {
    let stored = "old";
    const send = vi.fn(async ({ name }: { name: string }) => {
      stored = name.trim();
    });
    render(<Editor load={async () => ({ name: stored, seen: Math.random() })} send={send} />);
    await save("mine ");
    await waitFor(() => expect(stored).toBe("mine"));
    await waitFor(() => expect(screen.getByRole("button")).toBeEnabled());
    await save("mine again");
    await waitFor(() => expect(send).toHaveBeenCalledTimes(2));
    expect(screen.queryByText(/changed elsewhere/)).toBeNull();
  });

  it("warns of a concurrent change, then overwrites or discards", async () => {
    const send = vi.fn(async () => undefined);
    render(<Editor load={async () => ({ name: "theirs", seen: 1 })} send={send} />);
    await save("mine");
    await screen.findByText(/changed elsewhere/);
    expect(send).not.toHaveBeenCalled();
    expect(screen.getByLabelText("Name")).toHaveProperty("value", "mine");
    await userEvent.click(await screen.findByRole("button", { name: "Discard my changes" }));
    expect(screen.getByLabelText("Name")).toHaveProperty("value", "theirs");
    await save("mine");
    await waitFor(() => expect(send).toHaveBeenCalledWith({ name: "mine" }));
  });

  it("shows why it was rejected", async () => {
    render(
      <Editor
        load={async () => ({ name: "old", seen: 1 })}
        send={() => Promise.reject(new Error("no room"))}
      />,
    );
    await save("mine");
    expect((await screen.findByRole("alert")).textContent).toContain("no room");
  });
});

// Forms that edit existing objects warn the second of two editors. Exceptions are listed with their
// reasons.
const WITHOUT: Readonly<Record<string, string>> = {
  "pages/templates/new/CreateForm.tsx":
    "makes a new one; what it patches is the cancelling of its import",
  "pages/account/SecurityPage.tsx": "a password: what was there is not shown",
  "pages/people/CreateUserPage.tsx":
    "makes a new one, who has no roles yet that another could have given",
  "pages/tasks/TaskChat.tsx": "a message is added, and a prompt belongs to a task that is paused",
};

it("every editing form uses it", () => {
  const root = path.resolve(import.meta.dirname, "../..");
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
    /^(?:pages|features)\/.*(?<!\.test)\.tsx$/.test(name),
  );
  const changing = files.filter((name) => {
    const text = readFileSync(path.join(root, name), "utf8");
    return /\buse(Settings)?Form(<[^(]*>)?\(/.test(text) && /\b(put|patch)(<[^>]*>)?\(/.test(text);
  });
  const bare = changing.filter(
    (name) => !/\buse(SettingsForm|Conflict)\(/.test(readFileSync(path.join(root, name), "utf8")),
  );
  expect(bare.sort()).toEqual(Object.keys(WITHOUT).sort());
  expect(changing.length).toBeGreaterThan(12);
});
