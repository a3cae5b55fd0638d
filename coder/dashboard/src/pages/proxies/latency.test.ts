import { afterEach, expect, it, vi } from "vitest";

import { latencyTone, measure } from "./latency";

afterEach(() => vi.unstubAllGlobals());

it("takes the smallest of several of its own site", async () => {
  const asked = vi.fn(async () => new Response("OK"));
  vi.stubGlobal("fetch", asked);
  expect(await measure("https://here.test", "https://here.test")).toBeGreaterThanOrEqual(0);
  expect(asked).toHaveBeenCalledTimes(4);
});

it.each([["no address"], ["http://elsewhere.test"]])("does not ask %s", async (address) => {
  const asked = vi.fn();
  vi.stubGlobal("fetch", asked);
  expect(await measure(address, "https://here.test")).toBeNull();
  expect(asked).not.toHaveBeenCalled();
});

it("says nothing where nothing answers", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("no")));
  expect(await measure("https://here.test", "https://here.test")).toBeNull();
});

it.each([[20, "good"], [200, "warn"], [900, "bad"]])("%d ms is %s", (ms, tone) => {
  expect(latencyTone(ms)).toBe(tone);
});
