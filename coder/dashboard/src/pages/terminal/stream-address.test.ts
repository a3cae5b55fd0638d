import { afterEach, expect, it, vi } from "vitest";

import { streamAddress } from "./stream-address";

afterEach(() => vi.unstubAllGlobals());

const wanted = { reconnect: "r", width: 80, height: 24, command: "" };
const PATH = "/api/v2/workspaceagents/a1/pty";

it("is at this server, without a request", async () => {
  const asked = vi.fn();
  vi.stubGlobal("fetch", asked);
  expect(await streamAddress("", "a1", wanted)).toBe(
    `ws://${window.location.host}${PATH}?reconnect=r&width=80&height=24`,
  );
  expect(asked).not.toHaveBeenCalled();
});

it.each([
  ["https://sydney.test", "wss://sydney.test"],
  ["http://sydney.test:3001", "ws://sydney.test:3001"],
])("carries a ticket for the proxy %s", async (place, socket) => {
  const asked = vi.fn(async (_: string, __: RequestInit) => Response.json({ signed_token: "t" }));
  vi.stubGlobal("fetch", asked);
  expect(await streamAddress(place, "a1", wanted)).toBe(
    `${socket}${PATH}?reconnect=r&width=80&height=24&coder_signed_app_token_23db1dde=t`,
  );
  expect(JSON.parse(String(asked.mock.calls[0]?.[1].body))).toEqual({
    url: `${socket}${PATH}`,
    agentID: "a1",
  });
});

it("is null while the server rejects tickets", async () => {
  vi.stubGlobal("fetch", async () => Response.json({ message: "Invalid URL." }, { status: 400 }));
  await expect(streamAddress("https://gone.test", "a1", wanted)).rejects.toThrow("Invalid URL.");
});
