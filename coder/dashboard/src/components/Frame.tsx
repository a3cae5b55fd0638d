// Top bar, content, foot: the frame of every page but the doors. Without a user it offers signing in.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, type ReactNode } from "react";
import { Link, NavLink, useLocation, useNavigate } from "react-router";

import { post } from "../api/client";
import { buildInfo } from "../api/queries";
import type { User } from "../api/types";

export function Frame({ user, children }: { user: User | null; children: ReactNode }) {
  const info = useQuery(buildInfo);
  const content = useFocusOnNavigation();
  return (
    <>
      <a className="skip" href="#content">Skip to content</a>
      <header className="top">
        <Link to="/workspaces" className="brand" aria-label="Coder, home">
          <img src="/favicon.svg" alt="" width={26} height={26} />
          <span>Coder</span>
        </Link>
        {user ? (
          <nav aria-label="Main">
            <NavLink to="/workspaces">Workspaces</NavLink>
            <NavLink to="/templates">Templates</NavLink>
          </nav>
        ) : null}
        <div className="who">{user ? <Person user={user} /> : <Link className="button" to="/login">Sign in</Link>}</div>
      </header>
      <main id="content" ref={content} tabIndex={-1}>{children}</main>
      <footer className="foot">
        {info.data ? <span>Coder {info.data.version}</span> : null}
        <Link to="/install">Install the command line</Link>
      </footer>
    </>
  );
}

function Person({ user }: { user: User }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const signOut = async () => {
    await post("/api/v2/users/logout").catch(() => undefined);
    queries.clear();
    void navigate("/login");
  };
  return (
    <>
      <span className="avatar" aria-hidden="true">{user.username.slice(0, 1).toUpperCase()}</span>
      <span className="name" title={user.email}>{user.username}</span>
      <button type="button" className="quiet" onClick={() => void signOut()}>Sign out</button>
    </>
  );
}

// A new page begins at its content for the keyboard and for screen readers, as a fresh document would.
function useFocusOnNavigation() {
  const { pathname } = useLocation();
  const content = useRef<HTMLElement>(null);
  const shown = useRef(pathname);
  useEffect(() => {
    if (shown.current === pathname) return;
    shown.current = pathname;
    content.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [pathname]);
  return content;
}
