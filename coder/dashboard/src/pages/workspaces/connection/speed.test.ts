import { expect, it } from "vitest";

import { visit } from "../../../test/world";
import { AIM_MS, FIRST_BYTES, measureSpeed, MOST_BYTES, nextBytes, speedText } from "./speed";

it.each([
  ["a fast line", 1, MOST_BYTES],
  ["a line of 10 Mbit/s", 210, Math.round((FIRST_BYTES * AIM_MS) / 210)],
  ["a slow line", AIM_MS, 0],
  ["a line without a measurable time", 0, MOST_BYTES],
])("sends as many bytes as the time allows: %s", (_, ms, bytes) =>
  expect(nextBytes(FIRST_BYTES, ms)).toBe(bytes),
);

it.each([
  [0.84, "0.8 Mbit/s"],
  [42.4, "42 Mbit/s"],
])("writes %d as %s", (value, text) => expect(speedText(value)).toBe(text));

const PATH = "/api/v2/workspaceagents/a/speedtest";

it("measures each part on its own", async () => {
  const asked: number[] = [];
  const page = visit([{ path: "/", element: null }], "/", {
    [`GET ${PATH}/payload`]: (_: unknown, query: URLSearchParams) => {
      asked.push(Number(query.get("bytes")));
      return new Uint8Array(1);
    },
    [`POST ${PATH}/payload`]: {},
    [`POST ${PATH}`]: ({ direction }: { direction: string }) => ({
      direction,
      mbits: direction === "down" ? 50 : 5,
      via: direction === "down" ? "" : "relay",
    }),
  });
  // Each transfer takes 1,048 ms: a quarter of a mebibyte in the first, twice as much in the second.
  let clock = 0;
  const parts: string[] = [];
  const speed = await measureSpeed(
    "a",
    (part) => parts.push(part),
    () => (clock += 1048),
  );
  expect(speed.agent).toEqual({ down: 50, up: 5 });
  expect(speed.via).toBe("relay");
  expect(speed.browser.down).toBeCloseTo(3.82, 1);
  expect(speed.browser.up).toBeCloseTo(speed.browser.down);
  expect(asked).toEqual([FIRST_BYTES, nextBytes(FIRST_BYTES, 1048)]);
  const sent = page.sent.filter(({ path }) => path.endsWith("/payload"));
  expect(sent.map(({ body }) => (body as Blob).size)).toEqual(asked);
  expect(parts).toHaveLength(4);
});
