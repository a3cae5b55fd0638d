// A program's own words about itself, in ours: "Firefox on Linux". A hint for the person, no proof: anybody may say anything.
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  // Those built on others name them, too: the first that fits is the one.
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

/** "" for a program that has said nothing. */
export function programName(agent: string): string {
  const system = SYSTEMS.find(([sign]) => sign.test(agent))?.[1];
  const program = COMMAND_LINE.test(agent)
    ? "Coder command line"
    : (BROWSERS.find(([sign]) => sign.test(agent))?.[1] ?? firstWord(agent));
  return system && program ? `${program} on ${system}` : program || system || "";
}

/** Programs that are no browsers begin with their name: `curl/8.1`. */
function firstWord(agent: string): string {
  const word = /^[^\s/(]+/.exec(agent.trim())?.[0] ?? "";
  return word === "Mozilla" ? "" : word.length > LONGEST ? `${word.slice(0, LONGEST)}…` : word;
}
