import { Link } from "react-router";

import { useTitle } from "../components/title";

export function NotFoundPage() {
  useTitle("Page not found");
  return (
    <div className="empty">
      <h1>Page not found</h1>
      <p>It may have been removed, or you may not have access to it.</p>
      <Link className="button" to="/workspaces">Back to workspaces</Link>
    </div>
  );
}
