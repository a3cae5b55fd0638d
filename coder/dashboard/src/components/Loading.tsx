// Shown while the first answer is under way; short waits show nothing (see .loading in style.css).
export function Loading() {
  return (
    <div className="loading" role="status">
      <span className="hidden">Loading…</span>
    </div>
  );
}
