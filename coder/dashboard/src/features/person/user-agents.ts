// A user agent in plain words: "Firefox on Linux". A hint for the user, not a proof: a client may
// send any user agent.
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  // Browsers derived from others name those as well: the first match counts.
  [/\b(?:Edg|EdgA|EdgiOS)\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bVivaldi\//, "Vivaldi"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:Chrome|CriOS|HeadlessChrome)\//, "Chrome"],
  [/\bVersion\/\S+ .*\bSafari\//, "Safari"],
];
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\bAndroid\b/, "Android"],
  [/\biPad\b/, "iPad"],
  [/\biPhone\b/, "iPhone"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b|\bMacintosh\b|\bdarwin\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/i, "Linux"],
];
const COMMAND_LINE = /^coder(?:-cli)?\//;
const LONGEST = 40;

/** "" for a client without a user agent. */
export function programName(agent: string): string {
  const system = SYSTEMS.find(([sign]) => sign.test(agent))?.[1];
  const program = COMMAND_LINE.test(agent)
    ? "Coder CLI"
    : (BROWSERS.find(([sign]) => sign.test(agent))?.[1] ?? firstWord(agent));
  return system && program ? `${program} on ${system}` : program || system || "";
}

/** Clients that are not browsers begin with their name: `curl/8.1`. */
function firstWord(agent: string): string {
  const word = /^[^\s/(]+/.exec(agent.trim())?.[0] ?? "";
  return word === "Mozilla" ? "" : word.length > LONGEST ? `${word.slice(0, LONGEST)}…` : word;
}
