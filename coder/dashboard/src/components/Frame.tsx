// Top bar, content, foot: the frame of every signed-in page.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link, NavLink, useNavigate } from "react-router";

import { post } from "../api/client";
import { buildInfo } from "../api/queries";
import type { User } from "../api/types";

export function Frame({ user, children }: { user: User; children: ReactNode }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const info = useQuery(buildInfo);
  const signOut = async () => {
    await post("/api/v2/users/logout").catch(() => undefined);
    queries.clear();
    void navigate("/login");
  };
  return (
    <>
      <a className="skip" href="#content">Skip to content</a>
      <header className="top">
        <Link to="/workspaces" className="brand" aria-label="Coder, home">
          <img src="/favicon.svg" alt="" width={26} height={26} />
          <span>Coder</span>
        </Link>
        <nav aria-label="Main">
          <NavLink to="/workspaces">Workspaces</NavLink>
          <NavLink to="/templates">Templates</NavLink>
        </nav>
        <div className="who">
          <span className="avatar" aria-hidden="true">{user.username.slice(0, 1).toUpperCase()}</span>
          <span>{user.username}</span>
          <button type="button" className="quiet" onClick={() => void signOut()}>Sign out</button>
        </div>
      </header>
      <main id="content">{children}</main>
      <footer className="foot">{info.data ? `Coder ${info.data.version}` : ""}</footer>
    </>
  );
}
