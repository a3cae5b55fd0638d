// The platforms that binaries exist for, in words, and the operating system of the browser.
export type System = "linux" | "darwin" | "windows";

export const SYSTEMS: readonly { value: System; text: string }[] = [
  { value: "linux", text: "Linux" },
  { value: "darwin", text: "macOS" },
  { value: "windows", text: "Windows" },
];

export interface Platform {
  system: System;
  architecture: string;
  /** Architectures in words, without the operating system. */
  text: string;
}

export const PLATFORMS: readonly Platform[] = [
  { system: "linux", architecture: "amd64", text: "Intel/AMD, 64-bit" },
  { system: "linux", architecture: "arm64", text: "ARM, 64-bit" },
  { system: "linux", architecture: "armv7", text: "ARM, 32-bit" },
  { system: "darwin", architecture: "arm64", text: "Apple silicon" },
  { system: "darwin", architecture: "amd64", text: "Intel" },
  { system: "windows", architecture: "amd64", text: "Intel/AMD" },
  { system: "windows", architecture: "arm64", text: "ARM" },
];

/** In the server's notation: `linux/amd64`. */
export const keyOf = (platform: Platform): string => `${platform.system}/${platform.architecture}`;

export const nameOf = (platform: Platform): string =>
  `${SYSTEMS.find((item) => item.value === platform.system)?.text ?? platform.system}, ${platform.text}`;

/** The file below /bin. */
export const fileOf = (platform: Platform): string =>
  `coder-${platform.system}-${platform.architecture}${platform.system === "windows" ? ".exe" : ""}`;

export function systemOf(agent: string): System {
  if (/Windows/i.test(agent)) return "windows";
  return /Mac OS X|Macintosh|iPhone|iPad/i.test(agent) ? "darwin" : "linux";
}
