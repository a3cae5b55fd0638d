import { x25519 } from "@noble/curves/ed25519.js";
import { describe, expect, it } from "vitest";

import type { CreateWireguardClientResponse } from "../../../api/types";
import { bytesText, configText, forQr, makeKeys } from "./wireguard";

const bytes = (text: string) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const target = {
  workspace_id: "w",
  workspace_name: "dev",
  owner_name: "ana",
  agent_id: "a",
  agent_name: "main",
  address: "fd7a::1",
};
const created = (workspace_ids: string[] | null): CreateWireguardClientResponse => ({
  client: {
    id: "1",
    user_id: "u",
    username: "ana",
    name: "phone",
    public_key: "k",
    address: "fd7a::9",
    created_at: "",
    expires_at: null,
    workspace_ids,
    status: "active",
    last_handshake_at: null,
    endpoint: "",
    rx_bytes: 0,
    tx_bytes: 0,
    targets: [target],
  },
  server: {
    enabled: true,
    endpoint: "[2001:db8::1]:51820",
    public_key: "server=",
    allowed_ips: ["fd7a:115c:a1e0::/48"],
    mtu: 1280,
    persistent_keepalive: 25,
  },
});

describe("device keys", () => {
  it("are a clamped pair, new each time", () => {
    const [first, second] = [makeKeys(), makeKeys()];
    const secret = bytes(first.secret);
    expect(secret).toHaveLength(32);
    expect((secret[0] ?? 1) & 7).toBe(0);
    expect((secret[31] ?? 0) & 192).toBe(64);
    expect(bytes(first.shared)).toEqual(x25519.getPublicKey(secret));
    expect(first.secret).not.toBe(second.secret);
  });
});

describe("device configuration", () => {
  it("routes all workspaces, including future ones", () => {
    expect(configText(created(null), "SECRET")).toBe(
      "# phone of ana; the only copy of its private key.\n# ana/dev.main: fd7a::1\n" +
        "[Interface]\nPrivateKey = SECRET\nMTU = 1280\nAddress = fd7a::9/128\n\n" +
        "[Peer]\nPublicKey = server=\nEndpoint = [2001:db8::1]:51820\nPersistentKeepalive = 25\nAllowedIPs = fd7a:115c:a1e0::/48\n",
    );
  });
  it("routes only selected workspaces", () => {
    expect(configText(created(["w"]), "SECRET")).toContain("AllowedIPs = fd7a::1/128\n");
  });
  it("has no comments in the QR code", () => {
    expect(forQr(configText(created(null), "SECRET"))).not.toMatch(/#|\n\n/);
  });
});

it.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1536, "1.5 KiB"],
  [20 * 1024 ** 2, "20 MiB"],
])("formats %d as %s", (count, words) => {
  expect(bytesText(count)).toBe(words);
});
