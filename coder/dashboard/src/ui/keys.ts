// Keys in text fields.
import type { KeyboardEvent as ReactKeyboardEvent } from "react";

/**
 * The pressed key; "" while an input method composes (Chinese, Japanese, Korean): Enter then
 * accepts a suggested word, arrows move through the suggestions, Escape closes them, and the page
 * must ignore all of them.
 */
export function keyOf(event: ReactKeyboardEvent | KeyboardEvent): string {
  const native = "nativeEvent" in event ? event.nativeEvent : event;
  // Safari ends the composition first and then reports the key that ended it with code 229.
  return native.isComposing || native.keyCode === 229 ? "" : event.key;
}
