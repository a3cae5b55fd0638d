// The header of a page and its width.
import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "react-router";

import { cx } from "./cx";

interface PageHeadProps {
  title: ReactNode;
  description?: ReactNode;
  /** Shown before the title: an avatar or an icon. */
  icon?: ReactNode;
  badge?: ReactNode;
  actions?: ReactNode;
  crumbs?: readonly (readonly [text: string, to?: string])[];
}

export function PageHead({ title, description, icon, badge, actions, crumbs }: PageHeadProps) {
  return (
    <header className="mb-5">
      {crumbs ? <Crumbs items={crumbs} /> : null}
      <div className="flex flex-wrap items-center gap-x-4 gap-y-3">
        <div className="flex min-w-0 flex-1 basis-64 items-center gap-3">
          {icon}
          <div className="min-w-0">
            <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
              <h1 className="text-2xl font-semibold tracking-tight">{title}</h1>
              {badge}
            </div>
            {description ? (
              <div className="mt-0.5 text-base text-muted [overflow-wrap:anywhere]">
                {description}
              </div>
            ) : null}
          </div>
        </div>
        {actions ? <div className="flex flex-wrap items-center gap-2">{actions}</div> : null}
      </div>
    </header>
  );
}

function Crumbs({ items }: { items: readonly (readonly [text: string, to?: string])[] }) {
  return (
    <nav aria-label="Breadcrumb" className="mb-2">
      <ol className="flex flex-wrap items-center gap-1 text-sm text-muted">
        {items.map(([text, to], index) => (
          <li key={`${text} ${index}`} className="flex min-w-0 items-center gap-1">
            {index > 0 ? (
              <ChevronRight className="size-3.5 shrink-0 text-faint" aria-hidden="true" />
            ) : null}
            {to ? (
              <Link to={to} className="truncate hover:text-text hover:underline">
                {text}
              </Link>
            ) : (
              <span className="truncate">{text}</span>
            )}
          </li>
        ))}
      </ol>
    </nav>
  );
}

/**
 * Pages with forms and text are narrower than those with tables: centered, or next to the
 * navigation of a SidePage.
 */
export function Narrow({ children, className }: { children: ReactNode; className?: string }) {
  return <div className={cx("mx-(--narrow,auto) w-full max-w-3xl", className)}>{children}</div>;
}

export function Stack({ children, className }: { children: ReactNode; className?: string }) {
  return <div className={cx("flex flex-col gap-4", className)}>{children}</div>;
}

/** A link inside text or a table cell. */
export function TextLink({
  to,
  children,
  className,
}: {
  to: string;
  children: ReactNode;
  className?: string;
}) {
  return (
    <Link
      to={to}
      className={cx("font-medium text-accent-text underline-offset-2 hover:underline", className)}
    >
      {children}
    </Link>
  );
}
