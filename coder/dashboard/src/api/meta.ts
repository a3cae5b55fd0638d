// Values that the server embedded in the page, so that the first view needs no requests for them.
/** Return a value that is plain text, not JSON; "" for none. */
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

/**
 * Each value is used once: after sign-in or sign-out the embedded values belong to another user.
 */
export function takePageValue<T>(name: string): T | undefined {
  const value = pageValue<T>(name);
  document.querySelector(`meta[property="${name}"]`)?.remove();
  return value;
}
