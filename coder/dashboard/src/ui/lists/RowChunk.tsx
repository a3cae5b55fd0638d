// A part of a long table. Parts far from the screen are an empty row of their height: 20,000 rows are
// as quick to scroll as a few hundred. The browser's own search finds the rendered rows only.
import { useEffect, useRef, useState, type ReactNode } from "react";

/** Rows of a part. */
export const CHUNK = 25;
/** Tables of more rows are rendered in parts. */
export const WHOLE = 200;
/** Pixels above and below the screen within which parts are rendered. */
const MARGIN = 600;
/** Pixels of a row that has not been rendered yet. */
const ROW_HEIGHT = 49;

export const isWindowed = (rows: number): boolean => rows > WHOLE;

/** The parts of a table: one for a short table. */
export function chunksOf(rows: number): { from: number; to: number }[] {
  const size = isWindowed(rows) ? CHUNK : Math.max(rows, 1);
  return Array.from({ length: Math.max(1, Math.ceil(rows / size)) }, (_, index) => ({
    from: index * size,
    to: Math.min((index + 1) * size, rows),
  }));
}

const watched = new WeakMap<Element, (entry: IntersectionObserverEntry) => void>();
let observer: IntersectionObserver | undefined;

/** Call `onMove` whenever the element comes near the screen or leaves it. Returns the end. */
function watch(element: Element, onMove: (entry: IntersectionObserverEntry) => void): () => void {
  observer ??= new IntersectionObserver(
    (entries) => entries.forEach((entry) => watched.get(entry.target)?.(entry)),
    { rootMargin: `${MARGIN}px 0px` },
  );
  watched.set(element, onMove);
  observer.observe(element);
  return () => {
    watched.delete(element);
    observer?.unobserve(element);
  };
}

export function RowChunk({
  windowed: wanted,
  first,
  count,
  columns,
  render,
}: {
  /** The table is long. */
  windowed: boolean;
  /** The first part, which is on the screen when the table opens. */
  first: boolean;
  count: number;
  columns: number;
  render: () => ReactNode;
}) {
  const body = useRef<HTMLTableSectionElement>(null);
  // Without the observer, as in old browsers, all parts are rendered.
  const windowed = wanted && typeof IntersectionObserver !== "undefined";
  const [near, setNear] = useState(first);
  const [height, setHeight] = useState(count * ROW_HEIGHT);
  useEffect(() => {
    const element = body.current;
    if (!windowed || element === null) return;
    return watch(element, ({ isIntersecting, boundingClientRect }) => {
      // A row with the focus stays: the keyboard would start again at the top of the page.
      if (!isIntersecting && element.contains(document.activeElement)) return;
      if (!isIntersecting && boundingClientRect.height > 0) setHeight(boundingClientRect.height);
      setNear(isIntersecting);
    });
  }, [windowed]);
  return (
    <tbody ref={body}>
      {near || !windowed ? (
        render()
      ) : (
        <tr aria-hidden="true">
          <td colSpan={columns} style={{ height, padding: 0 }} />
        </tr>
      )}
    </tbody>
  );
}
