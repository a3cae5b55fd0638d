import type { ReactNode } from "react";

export function Notice({ kind, title, children }: { kind: "error" | "info" | "warning"; title: string; children?: ReactNode }) {
  return (
    <div className={`notice ${kind}`} role={kind === "error" ? "alert" : "status"}>
      <strong>{title}</strong>
      {children ? <div>{children}</div> : null}
    </div>
  );
}
