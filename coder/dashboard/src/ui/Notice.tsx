// An inline notice: information, a warning, an error. Errors are announced.
import { CircleAlert, CircleCheck, Info, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";

import { cx } from "./cx";

export type NoticeKind = "info" | "good" | "warning" | "error";

const LOOKS: Record<NoticeKind, string> = {
  info: "border-busy/40 bg-busy-soft [&>svg]:text-busy",
  good: "border-good/40 bg-good-soft [&>svg]:text-good",
  warning: "border-warn/40 bg-warn-soft [&>svg]:text-warn",
  error: "border-bad/40 bg-bad-soft [&>svg]:text-bad",
};
const ICONS = { info: Info, good: CircleCheck, warning: TriangleAlert, error: CircleAlert };

export function Notice({
  kind,
  title,
  children,
  actions,
}: {
  kind: NoticeKind;
  title: ReactNode;
  children?: ReactNode;
  actions?: ReactNode;
}) {
  const Icon = ICONS[kind];
  return (
    <div
      role={kind === "error" ? "alert" : "status"}
      className={cx("flex gap-2.5 rounded-lg border px-3.5 py-2.5 text-base", LOOKS[kind])}
    >
      <Icon className="mt-0.5 size-4.5 shrink-0" aria-hidden="true" />
      <div className="min-w-0 flex-1 [overflow-wrap:anywhere]">
        <p className="font-medium">{title}</p>
        {children ? <div className="mt-0.5 text-sm text-muted [&_p+p]:mt-1">{children}</div> : null}
        {actions ? <div className="mt-2 flex flex-wrap gap-2">{actions}</div> : null}
      </div>
    </div>
  );
}
