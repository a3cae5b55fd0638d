// Keys and configurations of plain WireGuard clients. The private key is generated here and is
// never sent.
import { x25519 } from "@noble/curves/ed25519.js";

import type { CreateWireguardClientResponse, WireguardTarget } from "../../../api/types";

export interface KeyPair {
  secret: string;
  shared: string;
}

/**
 * Base64, the key format of WireGuard tools. Works on plain-HTTP deployments too, where browsers
 * have no WebCrypto.
 */
export function makeKeys(): KeyPair {
  const secret = x25519.utils.randomSecretKey();
  // RFC 7748, section 5: tools show keys with these bits already set.
  secret[0] = (secret[0] ?? 0) & 248;
  secret[31] = ((secret[31] ?? 0) & 127) | 64;
  return { secret: base64(secret), shared: base64(x25519.getPublicKey(secret)) };
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

export const targetName = (target: WireguardTarget): string =>
  `${target.owner_name}/${target.workspace_name}.${target.agent_name}`;

/** The wg-quick configuration of a new device, equal to the output of `coder wireguard add`. */
export function configText(
  { client, server }: CreateWireguardClientResponse,
  secret: string,
): string {
  // A device limited to some workspaces routes only those; any other device also routes future ones.
  const limited =
    client.workspace_ids && client.workspace_ids.length > 0
      ? client.targets.map((target) => `${target.address}/128`)
      : [];
  return [
    `# ${client.name} of ${client.username}; the only copy of its private key.`,
    ...client.targets.map((target) => `# ${targetName(target)}: ${target.address}`),
    "[Interface]",
    `PrivateKey = ${secret}`,
    `MTU = ${server.mtu}`,
    `Address = ${client.address}/128`,
    "",
    "[Peer]",
    `PublicKey = ${server.public_key}`,
    `Endpoint = ${server.endpoint}`,
    `PersistentKeepalive = ${server.persistent_keepalive}`,
    ...(limited.length > 0 ? limited : server.allowed_ips).map(
      (network) => `AllowedIPs = ${network}`,
    ),
    "",
  ].join("\n");
}

/** The configuration without comments and empty lines: the QR code is coarser and scans faster. */
export function forQr(config: string): string {
  return config
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .join("\n");
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytesText(count: number): string {
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 10 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}
