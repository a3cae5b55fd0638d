// Where signing in leads: only to addresses of this site, however a link is written.

// What the server answers itself: applications of workspaces, and the way to those with a host of their own.
const SERVED =
  /^\/(?:api\/|oauth2\/|external-auth\/[^/]+\/callback|gitauth\/|(?:@|%40)[^/]+\/[^/]+\/apps\/)/;

/** Whether the dashboard shows it; anything else is loaded from the server. */
export function isPage(target: string): boolean {
  return !SERVED.test(target);
}

/** A link must not be able to send somebody elsewhere after signing in. */
export function safeTarget(redirect: string | null): string {
  if (redirect?.startsWith("/")) {
    try {
      // As the browser will read it: it drops tabs and line breaks, and takes backslashes for slashes.
      const place = new URL(redirect, window.location.origin);
      const path = place.pathname + place.search + place.hash;
      if (place.origin === window.location.origin && !path.startsWith("//")) return path;
    } catch {
      // no address at all
    }
  }
  return "/workspaces";
}
