// A panel next to its button. A panel takes the focus itself: it scrolls, and may contain nothing else
// focusable. The open panel is a module of its own (overlay/PopoverPanel), loaded after the page.
import { Slot } from "radix-ui";
import { Suspense, useId, useRef, useState, type ReactNode } from "react";

import { lateModule } from "./overlay/late-module";

const parts = lateModule(
  () => import("./overlay/PopoverPanel"),
  (module) => module.PopoverPanel,
);
/** Load the open panel's module, so that the first panel opens at once. */
export const loadPopovers = parts.load;

interface PopoverProps {
  trigger: ReactNode;
  children: ReactNode;
  label: string;
  align?: "start" | "center" | "end";
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
  className?: string;
}

export function Popover({
  trigger,
  children,
  label,
  align = "end",
  className = "w-80 p-4",
  open: controlled,
  onOpenChange,
}: PopoverProps) {
  const [own, setOwn] = useState(false);
  const open = controlled ?? own;
  const [used, setUsed] = useState(open);
  if (open && !used) setUsed(true);
  const anchor = useRef<HTMLButtonElement>(null);
  const id = useId();
  const show = (next: boolean) => {
    setOwn(next);
    if (next !== open) onOpenChange?.(next);
  };
  return (
    <>
      <Slot.Root
        ref={anchor}
        aria-haspopup="dialog"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        data-state={open ? "open" : "closed"}
        onPointerEnter={() => void parts.load()}
        onFocus={() => void parts.load()}
        onClick={() => show(!open)}
      >
        {trigger}
      </Slot.Root>
      {used ? (
        <Suspense fallback={null}>
          <parts.Part {...{ anchor, id, open, align, label, className }} onOpenChange={show}>
            {children}
          </parts.Part>
        </Suspense>
      ) : null}
    </>
  );
}
