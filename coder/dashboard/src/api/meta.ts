// What the server has put into the page, so that the first view asks for nothing it already has.
export function pageValue<T>(name: string): T | undefined {
  const content = document.querySelector<HTMLMetaElement>(`meta[property="${name}"]`)?.content;
  if (!content) return undefined;
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
