import { afterEach, expect, it, vi } from "vitest";

import { streamAddress } from "./stream-address";

afterEach(() => vi.unstubAllGlobals());

const params = { reconnect: "r", width: 80, height: 24, command: "" };
const PATH = "/api/v2/workspaceagents/a1/pty";

it("is at this server, without a request", async () => {
  const fetchMock = vi.fn();
  vi.stubGlobal("fetch", fetchMock);
  expect(await streamAddress("", "a1", params)).toBe(
    `ws://${window.location.host}${PATH}?reconnect=r&width=80&height=24`,
  );
  expect(fetchMock).not.toHaveBeenCalled();
});

it.each([
  ["https://sydney.test", "wss://sydney.test"],
  ["http://sydney.test:3001", "ws://sydney.test:3001"],
])("carries a ticket for the proxy %s", async (base, socket) => {
  const fetchMock = vi.fn(async (_: string, __: RequestInit) =>
    Response.json({ signed_token: "t" }),
  );
  vi.stubGlobal("fetch", fetchMock);
  expect(await streamAddress(base, "a1", params)).toBe(
    `${socket}${PATH}?reconnect=r&width=80&height=24&coder_signed_app_token_23db1dde=t`,
  );
  expect(JSON.parse(String(fetchMock.mock.calls[0]?.[1].body))).toEqual({
    url: `${socket}${PATH}`,
    agentID: "a1",
  });
});

it("is null while the server rejects tickets", async () => {
  vi.stubGlobal("fetch", async () => Response.json({ message: "Invalid URL." }, { status: 400 }));
  await expect(streamAddress("https://gone.test", "a1", params)).rejects.toThrow("Invalid URL.");
});
