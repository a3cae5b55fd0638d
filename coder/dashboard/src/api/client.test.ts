import { afterEach, beforeEach, expect, it, vi } from "vitest";

import {
  ApiError,
  get,
  getBytes,
  LIMITS_MS,
  isTransient,
  NoAnswer,
  patch,
  post,
  put,
  remove,
  upload,
} from "./client";

const requests: { method: string; keepalive: boolean }[] = [];
const answers: (() => void)[] = [];

beforeEach(() => {
  requests.length = answers.length = 0;
  vi.stubGlobal("fetch", (path: string, init: RequestInit) => {
    requests.push({
      method: `${init.method ?? "GET"} ${path}`,
      keepalive: init.keepalive === true,
    });
    return new Promise<Response>((done) => answers.push(() => done(Response.json({}))));
  });
});
afterEach(() => {
  for (const answer of answers) answer();
  vi.unstubAllGlobals();
});

it("keeps writes, not reads, alive after the page is left", () => {
  for (const send of [post, put, patch, remove]) void send(`/${send.name}`, { on: true });
  void get("/list");
  expect(requests).toEqual([
    { method: "POST /post", keepalive: true },
    { method: "PUT /put", keepalive: true },
    { method: "PATCH /patch", keepalive: true },
    { method: "DELETE /remove", keepalive: true },
    { method: "GET /list", keepalive: false },
  ]);
});

it("respects the browser's limit for keepalive bodies", async () => {
  const large = post("/large", { text: "é".repeat(25_000) });
  void post("/beside", { text: "é".repeat(25_000) });
  expect(requests.map((request) => request.keepalive)).toEqual([true, false]);
  answers[0]?.();
  await large;
  void post("/later", { text: "é".repeat(25_000) });
  expect(requests.at(-1)).toEqual({ method: "POST /later", keepalive: true });
});

const JSON_TYPE = { "content-type": "application/json" };
const CUT = "The answer was cut off, or did not come from this server.";

function answersWith(answer: (init: RequestInit) => Response | Promise<Response>): void {
  vi.stubGlobal("fetch", async (_: string, init: RequestInit = {}) => answer(init));
}

async function refusal(asking: Promise<unknown>): Promise<ApiError> {
  const error: unknown = await asking.then(
    (value) => {
      throw new Error(`answered ${String(value)}`);
    },
    (reason: unknown) => reason,
  );
  if (!(error instanceof ApiError)) throw error;
  return error;
}

it.each([
  ["half", '{"workspaces": [{"na', "application/json"],
  ["nothing", "", "application/json"],
  ["the page of a gateway", "<!doctype html><title>Sign in to the network</title>", "text/html"],
])("rejects %s in place of JSON", async (_, body, type) => {
  answersWith(() => new Response(body, { status: 200, headers: { "content-type": type } }));
  const failure = await refusal(get("/api/v2/workspaces"));
  expect([failure.message, failure instanceof NoAnswer, isTransient(failure)]).toEqual([
    CUT,
    true,
    true,
  ]);
  expect(failure.detail).not.toBe("");
  for (const change of [post, put, patch]) {
    const sent = await refusal(change(`/${change.name}`, {}));
    expect([sent.message, isTransient(sent)]).toEqual([CUT, false]);
    expect(sent.detail).toContain("The change may have been applied all the same");
  }
  expect(
    (await refusal(upload("/api/v2/files", new Blob(["x"]), "application/x-tar"))).message,
  ).toBe(CUT);
});

it.each([
  ["DELETE", 200, () => remove("/x")],
  ["POST", 204, () => post("/x")],
  ["DELETE", 202, () => remove("/x")],
  ["PUT", 204, () => put("/x")],
] as const)("accepts an empty answer to %s with status %s", async (_, status, call) => {
  answersWith(() => new Response(status === 204 ? null : "", { status }));
  expect(await call()).toBeUndefined();
});

it.each([
  [500, "", "The server answered with status 500."],
  [502, "<html><h1>Bad Gateway</h1>", "The server answered with status 502."],
  [500, '{"message": "Cut', "The server answered with status 500."],
  [500, '{"message": {"a": 1}}', "The server answered with status 500."],
  [500, '{"message": "Broken.", "validations": 7}', "Broken."],
])("treats a %s with %j as an error", async (status, body, message) => {
  answersWith(() => new Response(body, { status, headers: JSON_TYPE }));
  for (const call of [() => get("/x"), () => post("/x", {}), () => getBytes("/x")]) {
    const error = await refusal(call());
    expect([error.status, error.message, error.validations, isTransient(error)]).toEqual([
      status,
      message,
      [],
      true,
    ]);
  }
});

it("reports an unreachable server for every method", async () => {
  answersWith(() => Promise.reject(new TypeError("Failed to fetch")));
  for (const call of [
    () => get("/x"),
    () => post("/x"),
    () => upload("/x", new Blob(), "x"),
    () => getBytes("/x"),
  ]) {
    expect((await refusal(call())).message).toBe("The server is unreachable.");
  }
});

const silent = (init: RequestInit) =>
  new Promise<Response>((_, fail) => {
    init.signal?.addEventListener("abort", () => fail(init.signal?.reason as Error));
  });
const stuck = (init: RequestInit) =>
  new Response(
    new ReadableStream({
      start: (body) => {
        body.enqueue(new TextEncoder().encode("{"));
        init.signal?.addEventListener("abort", () => body.error(init.signal?.reason));
      },
    }),
    { headers: JSON_TYPE },
  );

it.each([
  ["silent from the start", silent],
  ["silent in the middle of its answer", stuck],
])("stops waiting for a server that is %s at the limit", async (_, answer) => {
  vi.useFakeTimers();
  try {
    answersWith(answer);
    for (const [kind, call] of [
      ["question", () => get("/x")],
      ["change", () => put("/y", {})],
      ["bytes", () => upload("/x", new Blob(), "x")],
      ["bytes", () => getBytes("/x")],
    ] as const) {
      let ended = false;
      const asking = refusal(call()).finally(() => {
        ended = true;
      });
      await vi.advanceTimersByTimeAsync(LIMITS_MS[kind] - 1000);
      expect(ended).toBe(false);
      await vi.advanceTimersByTimeAsync(1000);
      const error = await asking;
      expect([error.message, isTransient(error)]).toEqual([
        `The server did not answer within ${LIMITS_MS[kind] / 60_000} min.`,
        false,
      ]);
    }
  } finally {
    vi.useRealTimers();
  }
});

it("gives an archive enough time on a slow line", () => {
  const slow_bytes_per_s = 12_500; // 100 kbit/s
  expect((LIMITS_MS.bytes / 1000) * slow_bytes_per_s).toBeGreaterThan(10 << 20);
});
