// Which page an address shows. Adding a page is one file in pages/ and one line here.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Navigate, Route, Routes, useLocation } from "react-router";

import { hasFirstUser, me } from "./api/queries";
import { Failure } from "./components/Failure";
import { Frame } from "./components/Frame";
import { Loading } from "./components/Loading";
import { CliAuthPage } from "./pages/CliAuthPage";
import { InstallPage } from "./pages/InstallPage";
import { LoginPage } from "./pages/LoginPage";
import { NotFoundPage } from "./pages/NotFoundPage";
import { SetupPage } from "./pages/SetupPage";
import { TemplatesPage } from "./pages/TemplatesPage";
import { WorkspacePage } from "./pages/WorkspacePage";
import { WorkspacesPage } from "./pages/WorkspacesPage";

export function App() {
  return (
    <Routes>
      <Route path="/setup" element={<SetupPage />} />
      <Route path="/login" element={<LoginPage />} />
      <Route path="/cli-auth" element={<SignedIn bare><CliAuthPage /></SignedIn>} />
      <Route path="/" element={<Navigate to="/workspaces" replace />} />
      <Route path="/workspaces" element={<SignedIn><WorkspacesPage /></SignedIn>} />
      <Route path="/templates" element={<SignedIn><TemplatesPage /></SignedIn>} />
      <Route path="/:owner/:workspace" element={<SignedIn><WorkspacePage /></SignedIn>} />
      <Route path="/install" element={<Anyone><InstallPage /></Anyone>} />
      <Route path="*" element={<Anyone><NotFoundPage /></Anyone>} />
    </Routes>
  );
}

function SignedIn({ children, bare = false }: { children: ReactNode; bare?: boolean }) {
  const location = useLocation();
  const user = useQuery(me);
  const first = useQuery({ ...hasFirstUser, enabled: user.data === null });
  if (user.isPending) return <Loading />;
  if (user.isError) return <main><Failure error={user.error} retry={() => void user.refetch()} /></main>;
  if (user.data === null) {
    if (first.isPending) return <Loading />;
    if (first.data === false) return <Navigate to="/setup" replace />;
    const back = encodeURIComponent(location.pathname + location.search);
    return <Navigate to={`/login?redirect=${back}`} replace />;
  }
  return bare ? <>{children}</> : <Frame user={user.data}>{children}</Frame>;
}

// Pages that need no account: the frame has whoever is signed in.
function Anyone({ children }: { children: ReactNode }) {
  const user = useQuery(me);
  return user.isPending ? <Loading /> : <Frame user={user.data ?? null}>{children}</Frame>;
}
