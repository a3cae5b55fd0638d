// Keys in fields that people write in.
import type { KeyboardEvent } from "react";

/** The key that was pressed; "" while an input method composes (Chinese, Japanese, Korean): Enter takes a word it offers
 * then, arrows go through them, Escape leaves them, and none of that is for the page. */
export function keyOf(event: KeyboardEvent): string {
  // Safari says first that composing has ended and then which key ended it, as the number 229.
  return event.nativeEvent.isComposing || event.keyCode === 229 ? "" : event.key;
}
