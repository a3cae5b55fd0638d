import { afterEach, expect, it, vi } from "vitest";

import { csvField, MOST, readAll, textOf } from "./export";

afterEach(() => vi.unstubAllGlobals());

it.each([
  ["plain", "plain"],
  [200, "200"],
  [-5, "-5"],
  ['say "hi"', '"say ""hi"""'],
  ["a,b", '"a,b"'],
  ["two\nlines", '"two\nlines"'],
  ["=HYPERLINK(1)", "'=HYPERLINK(1)"],
  ["@cmd", "'@cmd"],
  ["+1,2", '"\'+1,2"'],
])("writes %j as a CSV field", (value, field) => {
  expect(csvField(value)).toBe(field);
});

it("writes CSV with a heading, and JSON lines", () => {
  const entries = [{ name: "a" }, { name: "b" }];
  const columns = { name: (entry: { name: string }) => entry.name };
  expect(textOf(entries, columns, "csv")).toBe("name\r\na\r\nb\r\n");
  expect(textOf(entries, columns, "jsonl")).toBe('{"name":"a"}\n{"name":"b"}\n');
});

it.each([
  [0, 0, 1],
  [130, 130, 2],
  [99_999, MOST, MOST / 100],
])("reads a log of %d entries as %d in %d requests", async (count, read, requests) => {
  let asked = 0;
  vi.stubGlobal("fetch", (address: string) => {
    asked += 1;
    const at = Number(new URL(address, "http://x").searchParams.get("offset") ?? 0);
    return Promise.resolve(Response.json(Array(Math.max(0, Math.min(100, count - at))).fill(1)));
  });
  expect(await readAll<number[], number>("/api/v2/audit", "", (page) => page)).toHaveLength(read);
  expect(asked).toBe(requests);
});
