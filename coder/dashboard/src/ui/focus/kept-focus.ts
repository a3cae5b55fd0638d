// The keyboard's place is never lost: if the focused control disappears, the focus moves to the next control of the
// same place; if it is disabled for a moment, it gets the focus back. The browser would leave the focus on the body:
// screen readers then start at the top of the page, and Enter does nothing.
import { focusOrigin, isUsable, returnFocus } from "./focus-return";

const CONTROLS =
  "a[href], button, input:not([type=hidden]), select, textarea, summary, iframe, [tabindex]";
/** A control outside of these is another place: the focus returns to the control before instead. */
const BOUNDS = "main, header, footer, aside, form[role=search], [role=dialog], [data-toasts], body";
/** After the libraries' own returns of the focus, which wait for a task or two. */
const AFTER_LIBRARIES_MS = 50;

/** Where an element was: the new focus is the first control after `before` in `parent`. */
interface Place {
  parent: Element;
  before: Node | null;
  /** The control before comes first: what replaces Cancel is Start, not what happens to follow. */
  backwards?: boolean;
}

/** The attribute of a control that is followed by the control before it. */
export const BACKWARDS = { "data-focus-backwards": "" };

/** Return the control that follows the place, or the last one before it, within the bounds of the place. */
export function nextControl({ parent, before, backwards }: Place): HTMLElement | null {
  let [box, edge]: [Element | null, Node | null] = [parent, before?.isConnected ? before : null];
  while (box) {
    const controls = [...box.querySelectorAll<HTMLElement>(CONTROLS)].filter(isUsable);
    const mark = edge;
    const next = controls.find(
      (control) =>
        mark === null ||
        (!mark.contains(control) &&
          (mark.compareDocumentPosition(control) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0),
    );
    const previous =
      backwards && mark !== null && box === parent
        ? controls.findLast(
            (control) =>
              mark.contains(control) ||
              (mark.compareDocumentPosition(control) & Node.DOCUMENT_POSITION_PRECEDING) !== 0,
          )
        : undefined;
    const chosen = previous ?? next ?? controls.at(-1);
    if (chosen) return chosen;
    if (box.matches(BOUNDS)) return null;
    [box, edge] = [box.parentElement, box];
  }
  return null;
}

/** Return where `element` was before these changes, in a parent that is still there. */
function placeOf(element: Node, changes: readonly MutationRecord[]): Place | null {
  let place: Place | null = null;
  let missing = element;
  for (const { target, removedNodes, previousSibling } of changes) {
    if (![...removedNodes].some((node) => node.contains(missing))) continue;
    if (!(target instanceof Element)) continue;
    place = { parent: target, before: previousSibling };
    missing = target; // may be removed by a later change
  }
  return place?.parent.isConnected ? place : null;
}

/** Return the control to focus after one that was at the place; null for the page's content. */
function successor(place: Place | null): HTMLElement | null {
  // The whole page has made room for another: what follows now is its frame, or a message in the corner.
  if (place && place.parent !== document.body && place.parent.closest(BOUNDS) === document.body)
    return null;
  if (place?.parent.isConnected && place.parent !== document.body)
    return nextControl(place) ?? (place.parent.closest("main") ? null : focusOrigin());
  // A popup, or a place that is gone: its button, or what follows a button that is disabled now.
  const origin = focusOrigin();
  if (!origin?.parentElement || isUsable(origin)) return origin;
  return nextControl({ parent: origin.parentElement, before: origin });
}

/** Keep the keyboard's place on this document. Return a function that stops it. */
export function keepFocus(): () => void {
  let last: HTMLElement | null = null;
  let wasDisabled = false;
  let pointer = false;
  let pending = 0;
  const nothingFocused = () =>
    document.activeElement === null || document.activeElement === document.body;
  const focused = (event: FocusEvent) => {
    if (!(event.target instanceof HTMLElement)) return;
    last = event.target;
    wasDisabled = false;
  };
  // A press on an empty part of the page means that nothing shall have the focus.
  const pressed = () => {
    pointer = true;
    last = null;
  };
  const typed = () => {
    pointer = false;
  };
  const settle = (place: Place | null) => {
    window.clearTimeout(pending);
    pending = window.setTimeout(() => {
      if (nothingFocused()) returnFocus(successor(place));
    }, AFTER_LIBRARIES_MS);
  };
  const watch = new MutationObserver((changes) => {
    if (last === null || pointer) return;
    if (!last.isConnected) {
      const found = placeOf(last, changes);
      const place = found && { ...found, backwards: last.matches("[data-focus-backwards]") };
      last = null;
      if (nothingFocused()) settle(place);
    } else if (last.matches(":disabled")) wasDisabled = true;
    else if (wasDisabled) {
      wasDisabled = false;
      if (nothingFocused()) last.focus();
    }
  });
  watch.observe(document.body, {
    childList: true,
    subtree: true,
    attributes: true,
    attributeFilter: ["disabled"],
  });
  document.addEventListener("focusin", focused, true);
  document.addEventListener("pointerdown", pressed, true);
  document.addEventListener("keydown", typed, true);
  return () => {
    watch.disconnect();
    window.clearTimeout(pending);
    document.removeEventListener("focusin", focused, true);
    document.removeEventListener("pointerdown", pressed, true);
    document.removeEventListener("keydown", typed, true);
  };
}
