// Small facts: a state as a dot with a label, a property as a tag. Colour never stands alone: the
// label is always there.
import type { ReactNode } from "react";

import { cx } from "./cx";
import { Hint } from "./Hint";

export type Tone = "good" | "warn" | "bad" | "busy" | "idle" | "accent";

const TEXT: Record<Tone, string> = {
  good: "text-good",
  warn: "text-warn",
  bad: "text-bad",
  busy: "text-busy",
  idle: "text-idle",
  accent: "text-accent-text",
};
const SOFT: Record<Tone, string> = {
  good: "bg-good-soft text-good",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
  busy: "bg-busy-soft text-busy",
  idle: "bg-idle-soft text-idle",
  accent: "bg-accent-soft text-accent-text",
};

function Dot({ tone, pulse = false }: { tone: Tone; pulse?: boolean }) {
  return (
    <i
      aria-hidden="true"
      className={cx(
        "inline-block size-2 shrink-0 rounded-full bg-current",
        TEXT[tone],
        pulse && "animate-pulse-soft",
      )}
    />
  );
}

/**
 * `quiet` for long lists: only the dot is coloured, the label has the colour of the surrounding
 * text.
 */
export function StatusText({
  tone,
  pulse = false,
  quiet = false,
  block = false,
  children,
}: {
  tone: Tone;
  pulse?: boolean;
  quiet?: boolean;
  /** A paragraph of its own; the text is then its only span. */
  block?: boolean;
  children: ReactNode;
}) {
  const Frame = block ? "p" : "span";
  return (
    <Frame
      className={cx(
        "inline-flex items-center",
        quiet ? "gap-1" : cx("gap-2 font-medium", TEXT[tone]),
      )}
    >
      <Dot tone={tone} pulse={pulse} />
      <span>{children}</span>
    </Frame>
  );
}

export function Tag({
  tone = "idle",
  children,
  title,
  icon,
}: {
  tone?: Tone;
  children: ReactNode;
  title?: string;
  icon?: ReactNode;
}) {
  return (
    <Hint
      text={title}
      className={cx(
        "inline-flex max-w-full items-center gap-1 rounded-sm px-1.5 py-px text-xs font-medium [&_svg]:size-3",
        SOFT[tone],
      )}
    >
      {icon}
      <span className="truncate">{children}</span>
    </Hint>
  );
}

/** The count next to a heading or a tab. */
export function Count({ value }: { value: number }) {
  return (
    <span className="rounded-full bg-idle-soft px-1.5 text-xs font-medium text-muted tabular-nums">
      {value}
    </span>
  );
}
