// Changes of one object, one after the other: the server may apply two concurrent changes in either
// order, and the answer to the first may arrive last. Changes that still wait when the user leaves
// the page are sent at once.
const last = new Map<string, Promise<void>>();

let leavePage = (): void => undefined;
let pageLeft = new Promise<void>((done) => {
  leavePage = done;
});
let leaving = false;

window.addEventListener("pagehide", () => {
  leaving = true;
  leavePage();
});
window.addEventListener("pageshow", () => {
  if (!leaving) return;
  leaving = false; // the browser restored the page from its cache
  pageLeft = new Promise<void>((done) => {
    leavePage = done;
  });
});

/** Send after the previous request for `thing` is answered. */
export function serialized<T>(thing: string, send: () => Promise<T>): Promise<T> {
  const before = last.get(thing);
  const current = before ? Promise.race([before, pageLeft]).then(send) : send();
  const settled = current.then(
    () => undefined,
    () => undefined,
  );
  last.set(thing, settled);
  void settled.then(() => {
    if (last.get(thing) === settled) last.delete(thing);
  });
  return current;
}
