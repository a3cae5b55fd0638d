// What stands in the top bar between the menus and the person. Loaded after the page itself: nothing waits for a bell.
import { lazy, Suspense } from "react";

const InboxBell = lazy(async () => ({ default: (await import("../pages/inbox/InboxBell")).InboxBell }));

export function FrameExtras() {
  return <Suspense fallback={<span className="size-8.5" />}><InboxBell /></Suspense>;
}
