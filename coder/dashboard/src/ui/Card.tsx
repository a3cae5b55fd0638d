// Surfaces: a card, a card with a header, a list of facts.
import { useId, type HTMLAttributes, type ReactNode } from "react";

import { cx } from "./cx";

export function Card({ className, ...rest }: HTMLAttributes<HTMLDivElement>) {
  return (
    <div
      className={cx("rounded-xl border border-line bg-surface shadow-card", className)}
      {...rest}
    />
  );
}

interface SectionProps {
  title: ReactNode;
  description?: ReactNode;
  actions?: ReactNode;
  children?: ReactNode;
  /** false: the content touches the edges, as tables and logs do. */
  padded?: boolean;
  id?: string;
  tone?: "plain" | "danger";
}

/** A titled card; the heading names the region. */
export function Section({
  title,
  description,
  actions,
  children,
  padded = true,
  id,
  tone = "plain",
}: SectionProps) {
  const own = useId();
  return (
    <section
      aria-labelledby={own}
      id={id}
      className={cx(
        "rounded-xl border bg-surface shadow-card",
        tone === "danger" ? "border-bad/50" : "border-line",
      )}
    >
      <header
        className={cx(
          "flex flex-wrap items-start gap-x-4 gap-y-2 px-5 py-3.5",
          children ? "border-b border-line" : "",
        )}
      >
        <div className="min-w-0 flex-1 basis-48">
          <h2 id={own} className="text-lg font-semibold">
            {title}
          </h2>
          {description ? <div className="mt-0.5 text-sm text-muted">{description}</div> : null}
        </div>
        {actions ? (
          <div className="flex flex-wrap items-center justify-end gap-2">{actions}</div>
        ) : null}
      </header>
      {children ? <div className={padded ? "px-5 py-4" : undefined}>{children}</div> : null}
    </section>
  );
}

/** Names and values, as a description list. */
export function Facts({ items }: { items: readonly (readonly [ReactNode, ReactNode])[] }) {
  return (
    <dl className="grid grid-cols-[minmax(7rem,auto)_1fr] gap-x-6 gap-y-2 text-base max-sm:grid-cols-1 max-sm:gap-y-0.5">
      {items.map(([name, value], index) => (
        <div key={index} className="contents">
          <dt className={cx("text-muted", index > 0 && "max-sm:mt-2")}>{name}</dt>
          <dd className="min-w-0 [overflow-wrap:anywhere]">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
