// Access to pages: public, or signed-in users only. A session that expires while a page is open is
// renewed in a dialog over the page, which keeps the user's input.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Navigate, Outlet, useLocation } from "react-router";

import { setSignedOut, useConnectionLost } from "../api/connection";
import { hasFirstUser, me } from "../api/queries/session";
import type { User } from "../api/types";
import { SignedInUser } from "../features/session/useMe";
import { Frame } from "./frame/Frame";
import { useUnframedPage } from "./frame/navigation-focus";
import { SignInAgain } from "./frame/SignInAgain";
import { Failure } from "../ui/Failure";
import { Loading } from "../ui/Loading";

export function SignedIn({ bare = false }: { bare?: boolean }) {
  const location = useLocation();
  const user = useQuery(me);
  const [last, setLast] = useState<User | null>(null);
  const first = useQuery({ ...hasFirstUser, enabled: user.data === null && last === null });
  useEffect(() => {
    if (user.data) setLast(user.data);
  }, [user.data]);
  const shown = user.data ?? last;
  const sessionExpired = user.data === null && last !== null;
  const lost = useConnectionLost();
  const queries = useQueryClient();
  useEffect(() => {
    setSignedOut(sessionExpired);
    return () => setSignedOut(false);
  }, [sessionExpired]);
  // A connection may be lost because the session has expired: then only the sign-in dialog says so.
  useEffect(() => {
    if (lost) void queries.invalidateQueries({ queryKey: me.queryKey, exact: true });
  }, [lost, queries]);
  if (shown) {
    return (
      <SignedInUser value={shown}>
        {bare ? (
          <Unframed />
        ) : (
          <Frame user={shown}>
            <Outlet />
          </Frame>
        )}
        {user.data === null ? <SignInAgain user={shown} /> : null}
      </SignedInUser>
    );
  }
  if (user.isPending) return <Loading />;
  if (user.isLoadingError)
    return (
      <main className="mx-auto w-full max-w-xl p-6">
        <Failure error={user.error} retry={() => void user.refetch()} />
      </main>
    );
  if (first.isPending) return <Loading />;
  if (first.data === false) return <Navigate to="/setup" replace />;
  const back = encodeURIComponent(location.pathname + location.search);
  return <Navigate to={`/login?redirect=${back}`} replace />;
}

/** Pages without the frame. */
export function Unframed() {
  useUnframedPage();
  return <Outlet />;
}

/** Pages that need no account: the frame shows the signed-in user if there is one. */
export function Public() {
  const user = useQuery(me);
  return user.isPending ? (
    <Loading />
  ) : (
    <Frame user={user.data ?? null}>
      <Outlet />
    </Frame>
  );
}
