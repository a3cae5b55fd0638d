// A panel next to its button, and a tooltip for words and icons that need explanation. A panel
// takes the focus itself: it scrolls, and may contain nothing else focusable.
import { Popover as RadixPopover, Tooltip as RadixTooltip } from "radix-ui";
import type { ReactNode } from "react";

import { cx } from "./cx";

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
  ...state
}: PopoverProps) {
  return (
    <RadixPopover.Root {...state}>
      <RadixPopover.Trigger asChild>{trigger}</RadixPopover.Trigger>
      <RadixPopover.Portal>
        <RadixPopover.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          aria-label={label}
          tabIndex={0}
          className={cx(
            "z-50 max-h-(--radix-popover-content-available-height)",
            "max-w-(--radix-popover-content-available-width) animate-appear overflow-y-auto",
            "rounded-lg border border-line bg-raised shadow-raised",
            className,
          )}
        >
          {children}
        </RadixPopover.Content>
      </RadixPopover.Portal>
    </RadixPopover.Root>
  );
}

/** Wraps a focusable element; the text is also its description for screen readers. */
export function Tooltip({ text, children }: { text: ReactNode; children: ReactNode }) {
  return (
    <RadixTooltip.Provider delayDuration={250}>
      <RadixTooltip.Root>
        <RadixTooltip.Trigger asChild>{children}</RadixTooltip.Trigger>
        <RadixTooltip.Portal>
          <RadixTooltip.Content
            sideOffset={6}
            collisionPadding={8}
            className="z-50 max-w-72 animate-appear rounded-md bg-text px-2.5 py-1.5 text-sm text-bg shadow-raised"
          >
            {text}
          </RadixTooltip.Content>
        </RadixTooltip.Portal>
      </RadixTooltip.Root>
    </RadixTooltip.Provider>
  );
}
