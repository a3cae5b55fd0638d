// Sample data for the components page.
import { type Tone } from "../../ui/Badge";

export const TONES: readonly Tone[] = ["good", "warn", "bad", "busy", "idle", "accent"];
export const COLOURS = [
  "bg",
  "surface",
  "inset",
  "raised",
  "hover",
  "selected",
  "line",
  "line-strong",
  "text",
  "muted",
  "faint",
  "accent",
  "good",
  "warn",
  "bad",
  "busy",
  "idle",
];
export const LINES = Array.from({ length: 20_000 }, (_, index) => ({
  id: index,
  text: `\u001b[3${index % 8}mline ${index}\u001b[0m of a long log`,
  level: index % 50 === 0 ? "error" : "info",
  stage: `Stage ${Math.floor(index / 500)}`,
}));
export const DAYS = Array.from({ length: 30 }, (_, index) => Date.UTC(2026, 0, index + 1));
export const MANY = Array.from({ length: 5000 }, (_, index) => ({
  value: String(index),
  text: `Option ${index}`,
}));
