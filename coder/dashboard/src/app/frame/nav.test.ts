import { afterEach, beforeEach, expect, it, vi } from "vitest";

beforeEach(() => vi.resetModules());
afterEach(() => {
  document.head.innerHTML = "";
});

async function main(content: string | null) {
  document.head.innerHTML =
    content === null ? "" : `<meta property="tasks-tab-visible" content="${content}">`;
  return (await import("./nav")).MAIN.map((item) => item.to);
}

it.each([
  ["true", true],
  ["false", false],
  ["", true],
  [null, true],
])("tasks-tab-visible %j: shows tasks: %s", async (content, offered) => {
  expect(await main(content)).toEqual([
    "/home",
    "/workspaces",
    "/templates",
    ...(offered ? ["/tasks"] : []),
  ]);
});
