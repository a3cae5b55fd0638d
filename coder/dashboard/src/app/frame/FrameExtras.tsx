// The part of the top bar between the menus and the user menu. Loaded after the page itself:
// nothing waits for it.
import { lazy, Suspense } from "react";

const InboxBell = lazy(async () => ({
  default: (await import("../../features/notification/InboxBell")).InboxBell,
}));
const ProxyMenu = lazy(async () => ({ default: (await import("./ProxyMenu")).ProxyMenu }));

/** `load`: whether the page has what it needs. */
export function FrameExtras({ load }: { load: boolean }) {
  const place = <span className="size-8.5" />;
  if (!load) return place;
  return (
    <>
      <Suspense fallback={null}>
        <ProxyMenu />
      </Suspense>
      <Suspense fallback={place}>
        <InboxBell />
      </Suspense>
    </>
  );
}
