// The redirect target after sign-in: addresses of this site only, however the link is written.

// Paths that the server answers itself: workspace applications, and the redirect to those on a
// subdomain.
const SERVED =
  /^\/(?:api\/|oauth2\/|external-auth\/[^/]+\/callback|gitauth\/|(?:@|%40)[^/]+\/[^/]+\/apps\/)/;

/** Whether the dashboard shows the page; any other address is loaded from the server. */
export function isPage(target: string): boolean {
  return !SERVED.test(target);
}

/** A link must not be able to redirect a user to another site after sign-in. */
export function safeTarget(redirect: string | null): string {
  if (redirect?.startsWith("/")) {
    try {
      // Parsed as a browser does: it drops tabs and line breaks, and treats backslashes as slashes.
      const url = new URL(redirect, window.location.origin);
      const path = url.pathname + url.search + url.hash;
      if (url.origin === window.location.origin && !path.startsWith("//")) return path;
    } catch {
      // no address at all
    }
  }
  return "/workspaces";
}
