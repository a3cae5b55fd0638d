import { afterEach, expect, it, vi } from "vitest";

import type { Workspace } from "../../api/types";
import { allMatching, MOST, settleAll } from "./all-matching";

afterEach(() => vi.unstubAllGlobals());

function serve(count: number) {
  const asked: string[] = [];
  vi.stubGlobal("fetch", (address: string) => {
    asked.push(address);
    const at = Number(new URL(address, "http://x").searchParams.get("offset") ?? 0);
    const workspaces = Array.from(
      { length: Math.min(100, Math.max(0, count - at)) },
      (_, index) => ({
        id: `w${at + index}`,
      }),
    );
    return Promise.resolve(Response.json({ workspaces, count }));
  });
  return asked;
}

it.each([
  [30, 30, 1],
  [250, 250, 3],
  [9000, MOST, MOST / 100],
])("loads %d matching workspaces as %d in %d requests", async (count, loaded, requests) => {
  const asked = serve(count);
  expect(await allMatching("owner:me")).toHaveLength(loaded);
  expect(asked).toHaveLength(requests);
});

it("acts on all, some at a time, in order of the results", async () => {
  const list = Array.from({ length: 20 }, (_, index) => ({ id: String(index) }) as Workspace);
  let running = 0;
  let highest = 0;
  const results = await settleAll(list, async ({ id }) => {
    running += 1;
    highest = Math.max(highest, running);
    await new Promise((done) => setTimeout(done, 1));
    running -= 1;
    if (id === "7") throw new Error("refused");
    return id;
  });
  expect(highest).toBeLessThanOrEqual(6);
  expect(results.map((result) => result.status).indexOf("rejected")).toBe(7);
  expect(results).toHaveLength(20);
});
