import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { get, patch, post, put, remove } from "./client";

const asked: { how: string; keepalive: boolean }[] = [];
const answers: (() => void)[] = [];

beforeEach(() => {
  asked.length = answers.length = 0;
  vi.stubGlobal("fetch", (path: string, init: RequestInit) => {
    asked.push({ how: `${init.method ?? "GET"} ${path}`, keepalive: init.keepalive === true });
    return new Promise<Response>((done) => answers.push(() => done(Response.json({}))));
  });
});
afterEach(() => {
  for (const answer of answers) answer();
  vi.unstubAllGlobals();
});

it("lets whatever changes something outlive its page, and questions end with it", () => {
  for (const send of [post, put, patch, remove]) void send(`/${send.name}`, { on: true });
  void get("/list");
  expect(asked).toEqual([
    { how: "POST /post", keepalive: true }, { how: "PUT /put", keepalive: true }, { how: "PATCH /patch", keepalive: true },
    { how: "DELETE /remove", keepalive: true }, { how: "GET /list", keepalive: false },
  ]);
});

it("keeps to what browsers let outlive a page at a time", async () => {
  const large = post("/large", { text: "é".repeat(25_000) });
  void post("/beside", { text: "é".repeat(25_000) });
  expect(asked.map((one) => one.keepalive)).toEqual([true, false]);
  answers[0]?.();
  await large;
  void post("/later", { text: "é".repeat(25_000) });
  expect(asked.at(-1)).toEqual({ how: "POST /later", keepalive: true });
});
