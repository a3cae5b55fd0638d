// Short messages in a corner: a completed action, or a failure while the user was elsewhere on the
// page.
import { CircleAlert, CircleCheck, X } from "lucide-react";
import { useEffect, useState, useSyncExternalStore } from "react";

import { reasonOf } from "../api/client";
import { IconButton } from "./Button";
import { cx } from "./cx";

interface Toast {
  id: number;
  kind: "good" | "error";
  text: string;
  detail: string;
}

const SHOWN_MS = { good: 4500, error: 9000 };
const KEPT = 4;
let shown: readonly Toast[] = [];
let last = 0;
const listeners = new Set<() => void>();

function change(next: readonly Toast[]) {
  shown = next;
  for (const listener of listeners) listener();
}

function dismiss(id: number) {
  change(shown.filter((toast) => toast.id !== id));
}

function add(kind: Toast["kind"], text: string, detail = "") {
  const id = ++last;
  change([...shown.slice(1 - KEPT), { id, kind, text, detail }]);
}

export const toast = {
  done: (text: string, detail?: string) => add("good", text, detail),
  failed: (text: string, error?: unknown) => add("error", text, reasonOf(error)),
};

export function Toasts() {
  const items = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
  return (
    <div
      data-toasts
      className="pointer-events-none fixed right-4 bottom-4 z-60 lg:bottom-12 flex w-[min(24rem,calc(100vw-2rem))] flex-col gap-2"
    >
      {/* The live regions always exist, so that their content is announced. */}
      {(["good", "error"] as const).map((kind) => (
        <div
          key={kind}
          aria-live={kind === "error" ? "assertive" : "polite"}
          className="flex flex-col gap-2"
        >
          {items
            .filter((item) => item.kind === kind)
            .map((item) => (
              <Message key={item.id} item={item} />
            ))}
        </div>
      ))}
    </div>
  );
}

/** It stays while a pointer or the focus is on it. */
function Message({ item: { id, kind, text, detail } }: { item: Toast }) {
  const [held, setHeld] = useState(false);
  useEffect(() => {
    if (held) return undefined;
    const timer = window.setTimeout(() => dismiss(id), SHOWN_MS[kind]);
    return () => window.clearTimeout(timer);
  }, [held, id, kind]);
  return (
    <div
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
      onMouseEnter={() => setHeld(true)}
      onMouseLeave={() => setHeld(false)}
      className={cx(
        "pointer-events-auto flex animate-appear items-start gap-2.5 rounded-lg border",
        "border-line bg-raised py-2.5 pr-2 pl-3.5 shadow-raised",
      )}
    >
      {kind === "error" ? (
        <CircleAlert className="mt-0.5 size-4.5 shrink-0 text-bad" aria-hidden="true" />
      ) : (
        <CircleCheck className="mt-0.5 size-4.5 shrink-0 text-good" aria-hidden="true" />
      )}
      <div className="min-w-0 flex-1 [overflow-wrap:anywhere]">
        <p className="font-medium">{text}</p>
        {detail ? <p className="text-sm text-muted">{detail}</p> : null}
      </div>
      <IconButton label="Dismiss" size="sm" onClick={() => dismiss(id)}>
        <X />
      </IconButton>
    </div>
  );
}
