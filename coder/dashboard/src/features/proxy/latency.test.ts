import { afterEach, expect, it, vi } from "vitest";

import { latencyTone, measure } from "./latency";

afterEach(() => vi.unstubAllGlobals());

it("takes the minimum, without cookies", async () => {
  const fetchMock = vi.fn(async (_: string, __: RequestInit) => new Response("OK"));
  vi.stubGlobal("fetch", fetchMock);
  expect(await measure("http://sydney.test:3001/")).toBeGreaterThanOrEqual(0);
  expect(fetchMock).toHaveBeenCalledTimes(4);
  for (const [address, init] of fetchMock.mock.calls) {
    expect(address).toMatch(/^http:\/\/sydney\.test:3001\/latency-check\?turn=/);
    expect(init.credentials).toBe("omit");
  }
});

it("sends nothing to an invalid address", async () => {
  const fetchMock = vi.fn();
  vi.stubGlobal("fetch", fetchMock);
  expect(await measure("no address")).toBeNull();
  expect(fetchMock).not.toHaveBeenCalled();
});

it.each([
  ["nothing answers", () => Promise.reject(new TypeError("no"))],
  ["it is no proxy", async () => new Response("", { status: 404 })],
])("returns null if %s", async (_, answer) => {
  vi.stubGlobal("fetch", answer);
  expect(await measure("https://here.test")).toBeNull();
});

it.each([
  [20, "good"],
  [200, "warn"],
  [900, "bad"],
])("shows %d ms as %s", (ms, tone) => {
  expect(latencyTone(ms)).toBe(tone);
});
