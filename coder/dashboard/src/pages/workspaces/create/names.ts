// A suggested workspace name.
const FIRST = [
  "amber",
  "bright",
  "calm",
  "clever",
  "coral",
  "eager",
  "gentle",
  "golden",
  "green",
  "happy",
  "kind",
  "lucky",
  "misty",
  "noble",
  "quick",
  "quiet",
  "rapid",
  "silver",
  "sunny",
  "swift",
];
const SECOND = [
  "badger",
  "beaver",
  "crane",
  "dolphin",
  "falcon",
  "finch",
  "fox",
  "gecko",
  "heron",
  "ibex",
  "lark",
  "lynx",
  "marten",
  "otter",
  "owl",
  "panda",
  "raven",
  "seal",
  "tern",
  "wren",
];

export function suggestName(random: () => number = Math.random): string {
  const pick = (words: readonly string[]) => words[Math.floor(random() * words.length)] ?? "";
  return `${pick(FIRST)}-${pick(SECOND)}-${Math.floor(random() * 90) + 10}`;
}
