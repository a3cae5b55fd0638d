// Loading: a spinner if the layout is unknown, a skeleton if it is known. Both appear only after a
// moment, and give way to the failure of a request that the page waits for in vain.
import { cx } from "./cx";
import { Failure } from "./Failure";
import { useStuck } from "./stuck";

export function Loading({ label = "Loading" }: { label?: string }) {
  const stuck = useStuck();
  if (stuck) return <Failure title="Failed to load the page" {...stuck} />;
  return (
    <div role="status" aria-label={label} className="h-0.5 w-full overflow-hidden">
      <div className="h-full w-1/3 animate-slide bg-accent" />
    </div>
  );
}

export function Skeleton({ className }: { className?: string }) {
  return (
    <span
      aria-hidden="true"
      className={cx("block animate-pulse-soft rounded-md bg-hover", className ?? "h-4 w-full")}
    />
  );
}

/** Rows of a table or list that is loading. */
export function SkeletonRows({ rows = 5 }: { rows?: number }) {
  const stuck = useStuck();
  if (stuck) return <Failure title="Failed to load the page" {...stuck} />;
  return (
    <div
      role="status"
      aria-label="Loading"
      className="divide-y divide-line rounded-xl border border-line bg-surface"
    >
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} className="flex items-center gap-4 px-4 py-3.5">
          <Skeleton className="size-8 rounded-md" />
          <Skeleton className="h-4 w-1/4" />
          <Skeleton className="ml-auto h-4 w-1/5" />
          <Skeleton className="h-4 w-1/6 max-sm:hidden" />
        </div>
      ))}
    </div>
  );
}
