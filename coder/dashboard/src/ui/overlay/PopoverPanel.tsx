// The open panel of a popover, which the library positions. Loaded after the page, by ../Popover.
import { Popover as Radix } from "radix-ui";
import { useRef } from "react";

import { cx } from "../cx";
import type { PopoverPanelProps } from "./panel-props";

export function PopoverPanel({
  anchor,
  id,
  open,
  onOpenChange,
  children,
  ...rest
}: PopoverPanelProps) {
  const { align, label, className } = rest;
  // A press outside focuses what was pressed; otherwise the focus returns to the button.
  const pressedOutside = useRef(false);
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Anchor virtualRef={anchor} />
      <Radix.Portal>
        <Radix.Content
          id={id}
          align={align}
          sideOffset={6}
          collisionPadding={8}
          aria-label={label}
          tabIndex={0}
          onInteractOutside={(event) => {
            pressedOutside.current = true;
            // The button closes the panel itself.
            if (event.target instanceof Node && anchor.current?.contains(event.target))
              event.preventDefault();
          }}
          onCloseAutoFocus={(event) => {
            if (!pressedOutside.current) anchor.current?.focus();
            pressedOutside.current = false;
            event.preventDefault();
          }}
          className={cx(
            "z-50 max-h-(--radix-popover-content-available-height)",
            "max-w-(--radix-popover-content-available-width) animate-appear overflow-y-auto",
            "rounded-lg border border-line bg-raised shadow-raised",
            className,
          )}
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
