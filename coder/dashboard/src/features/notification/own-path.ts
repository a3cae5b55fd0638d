/** The path of an address on this site; null for any other address. */
export function ownPath(address: string, origin = window.location.origin): string | null {
  try {
    const url = new URL(address, origin);
    return url.origin === origin ? url.pathname + url.search + url.hash : null;
  } catch {
    return null;
  }
}
