// Where the focus returns when a dialog closes. Radix returns it to a dialog's trigger, which a dialog
// with controlled state does not have.
import { useEffect, useRef } from "react";

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";
const KEPT = 6;

/**
 * The last elements that got the focus or were pressed, newest first: Safari does not focus a
 * pressed button, and a menu disappears before the dialog that it opens can look.
 */
let recent: HTMLElement[] = [];

function track(event: Event) {
  const target =
    event.target instanceof Element ? event.target.closest<HTMLElement>(FOCUSABLE) : null;
  if (!target) return;
  const element = lasting(target);
  recent = [element, ...recent.filter((other) => other !== element)].slice(0, KEPT);
}

/** The element itself, or the button of the menu that contains it: menus disappear with their items. */
function lasting(element: HTMLElement): HTMLElement {
  const trigger = element.closest("[role=menu]")?.getAttribute("aria-labelledby");
  return (trigger ? document.getElementById(trigger) : null) ?? element;
}

document.addEventListener("focusin", track, true);
document.addEventListener("pointerdown", track, true);

/** Return the element to which the focus returns after `dialog`, which has just opened or is about to. */
export function focusOrigin(dialog: Element | null = null): HTMLElement | null {
  const active = document.activeElement;
  const focused =
    active instanceof HTMLElement && active !== document.body ? [lasting(active)] : [];
  return (
    [...focused, ...recent].find((element) => element.isConnected && !dialog?.contains(element)) ??
    null
  );
}

/** Focus the element, or the page's content if the element has disappeared meanwhile. */
export function returnFocus(origin: HTMLElement | null): void {
  if (origin?.isConnected) origin.focus();
  else document.getElementById("content")?.focus({ preventScroll: true });
}

/**
 * Bring the focus back when a dialog closes. Return the ref of its content and the handler of its
 * closing. The library's event of opening is no use: it is left out if an input takes the focus.
 */
export function useFocusReturn(open: boolean) {
  const content = useRef<HTMLDivElement>(null);
  const origin = useRef<HTMLElement | null>(null);
  useEffect(() => {
    if (open) origin.current = focusOrigin(content.current);
  }, [open]);
  return {
    content,
    onCloseAutoFocus: (event: Event) => {
      event.preventDefault();
      returnFocus(origin.current);
    },
  };
}

/** Return the focus to `origin` when the component disappears. */
export function useFocusReturnOnUnmount(origin: HTMLElement | null): void {
  useEffect(
    // After the library's own handlers, which leave the focus on the body.
    () => () => void window.setTimeout(() => returnFocus(origin)),
    [origin],
  );
}
