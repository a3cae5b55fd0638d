// Changes of one thing, one after the other: of two that are under way at once the server may do either first, and the
// answer to the first may come last. What waits for its turn when the page is left is sent at once.
const last = new Map<string, Promise<void>>();

let leave = (): void => undefined;
let left = new Promise<void>((done) => {
  leave = done;
});
let leaving = false;

window.addEventListener("pagehide", () => {
  leaving = true;
  leave();
});
window.addEventListener("pageshow", () => {
  if (!leaving) return;
  leaving = false; // a page the browser kept, and has shown again
  left = new Promise<void>((done) => {
    leave = done;
  });
});

/** Sends when what was sent before for `thing` is answered. */
export function inTurn<T>(thing: string, send: () => Promise<T>): Promise<T> {
  const before = last.get(thing);
  const mine = before ? Promise.race([before, left]).then(send) : send();
  const settled = mine.then(
    () => undefined,
    () => undefined,
  );
  last.set(thing, settled);
  void settled.then(() => {
    if (last.get(thing) === settled) last.delete(thing);
  });
  return mine;
}
