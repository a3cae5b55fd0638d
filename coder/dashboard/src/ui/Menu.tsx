// A menu behind a button. Items are links or actions; an unavailable one is disabled with its
// reason. The open menu is a module of its own (overlay/MenuParts), loaded after the page.
import { createElement, Suspense, useId, useRef, useState, type ReactNode } from "react";
import { Slot } from "radix-ui";

import { keyOf } from "./keys";
import { lateModule } from "./overlay/late-module";
import type { MenuCheckProps, MenuItemProps } from "./overlay/panel-props";

const parts = lateModule(
  () => import("./overlay/MenuParts"),
  (module) => module.MenuPanel,
);
/** Load the open menu's module, so that the first menu opens at once. */
export const loadMenus = parts.load;

export function Menu({
  trigger,
  children,
  align = "end",
  label,
  onOpen,
}: {
  trigger: ReactNode;
  children: ReactNode;
  align?: "start" | "end";
  label?: string;
  onOpen?: () => void;
}) {
  const [open, setOpen] = useState(false);
  const [used, setUsed] = useState(false);
  const anchor = useRef<HTMLButtonElement>(null);
  const [triggerId, contentId] = [useId(), useId()];
  const show = (next: boolean) => {
    if (next) setUsed(true);
    if (next && !open) onOpen?.();
    setOpen(next);
  };
  return (
    <>
      <Slot.Root
        ref={anchor}
        id={triggerId}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? contentId : undefined}
        data-state={open ? "open" : "closed"}
        onPointerEnter={() => void parts.load()}
        onFocus={() => void parts.load()}
        onPointerDown={(event) => {
          if (event.button !== 0 || event.ctrlKey) return;
          show(!open);
          if (!open) event.preventDefault(); // the menu takes the focus
        }}
        onKeyDown={(event) => {
          const key = keyOf(event);
          if (!["Enter", " ", "ArrowDown"].includes(key)) return;
          show(key === "ArrowDown" || !open);
          event.preventDefault();
        }}
      >
        {trigger}
      </Slot.Root>
      {used ? (
        <Suspense fallback={null}>
          <parts.Part {...{ anchor, triggerId, contentId, open, align, label }} onOpenChange={show}>
            {children}
          </parts.Part>
        </Suspense>
      ) : null}
    </>
  );
}

// Only an open menu renders its children: their module is there.

/** A sentence in place of actions that the user may not perform. */
export function MenuNote(props: { children: ReactNode }) {
  return createElement(parts.loaded().MenuNote, props);
}

export function MenuItem(props: MenuItemProps) {
  return createElement(parts.loaded().MenuItem, props);
}

export function MenuCheck(props: MenuCheckProps) {
  return createElement(parts.loaded().MenuCheck, props);
}

export function MenuLabel(props: { children: ReactNode }) {
  return createElement(parts.loaded().MenuLabel, props);
}

export function MenuSeparator() {
  return createElement(parts.loaded().MenuSeparator);
}
