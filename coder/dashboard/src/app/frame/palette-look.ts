// What the palette and the input that precedes it share.
import { cx } from "../../ui/cx";

export const LABEL = "Search and commands";
export const PLACEHOLDER = "Search, or type a command such as: stop my-workspace";
export const OVERLAY = "fixed inset-0 z-40 bg-overlay";
export const PANEL = cx(
  "fixed top-[12vh] left-1/2 z-50 w-[min(38rem,calc(100vw-2rem))] -translate-x-1/2",
  "overflow-hidden rounded-xl border border-line bg-raised shadow-raised",
);
export const INPUT = "h-12 w-full border-b border-line bg-transparent px-4 text-lg underlined";
