// What the server has put into the page, so that the first view asks for nothing it already has.
/** A value that is text as it stands, not JSON; "" for none. */
export const pageText = (name: string): string =>
  document.querySelector<HTMLMetaElement>(`meta[property="${name}"]`)?.content ?? "";

export function pageValue<T>(name: string): T | undefined {
  const content = pageText(name);
  if (content === "") return undefined;
  try {
    return JSON.parse(content) as T;
  } catch {
    return undefined;
  }
}

/** Used once: after signing in or out the values in the page are somebody else's. */
export function takePageValue<T>(name: string): T | undefined {
  const value = pageValue<T>(name);
  document.querySelector(`meta[property="${name}"]`)?.remove();
  return value;
}
