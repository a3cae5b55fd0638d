// The programs this deployment serves below /bin, and which system a browser runs on.
export type System = "linux" | "darwin" | "windows";

export const PLATFORMS: readonly { system: System; file: string; text: string }[] = [
  { system: "linux", file: "coder-linux-amd64", text: "Intel/AMD, 64-bit" },
  { system: "linux", file: "coder-linux-arm64", text: "ARM, 64-bit" },
  { system: "linux", file: "coder-linux-armv7", text: "ARM, 32-bit" },
  { system: "darwin", file: "coder-darwin-arm64", text: "Apple silicon" },
  { system: "darwin", file: "coder-darwin-amd64", text: "Intel" },
  { system: "windows", file: "coder-windows-amd64.exe", text: "Intel/AMD" },
  { system: "windows", file: "coder-windows-arm64.exe", text: "ARM" },
];

export function systemOf(agent: string): System {
  if (/Windows/i.test(agent)) return "windows";
  return /Mac OS X|Macintosh|iPhone|iPad/i.test(agent) ? "darwin" : "linux";
}
