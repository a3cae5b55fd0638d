// Providers and the router. Routes are in routes/, one file per area.
import { QueryClientProvider } from "@tanstack/react-query";
import { useEffect } from "react";
import {
  createBrowserRouter,
  Outlet,
  RouterProvider,
  useNavigation,
  type RouteObject,
} from "react-router";

import { CrashPage } from "./CrashPage";
import { bareRoutes, framedRoutes, openRoutes, openFramedRoutes } from "./routes";
import { FocusTitle } from "../ui/focus/FocusTitle";
import { keepFocus } from "../ui/focus/kept-focus";
import { Loading } from "../ui/Loading";
import { Toasts } from "../ui/toast";
import { PageAnnouncer } from "./frame/PageAnnouncer";
import { Public, SignedIn, Unframed } from "./guards";
import { queries } from "./query-client";
import { useTheme } from "../features/appearance/theme";

function Root() {
  useTheme();
  useEffect(keepFocus, []);
  const navigation = useNavigation();
  return (
    <>
      {navigation.state === "loading" ? (
        <div className="fixed inset-x-0 top-0 z-60">
          <Loading label="Loading the page" />
        </div>
      ) : null}
      <Outlet />
      <PageAnnouncer />
      <Toasts />
      <FocusTitle />
    </>
  );
}

/** Keep the frame when a page crashes. */
const guarded = (routes: RouteObject[]): RouteObject[] => [
  { ErrorBoundary: CrashPage, children: routes },
];

const router = createBrowserRouter([
  {
    Component: Root,
    ErrorBoundary: CrashPage,
    HydrateFallback: Loading,
    children: [
      { Component: Unframed, children: openRoutes },
      { element: <SignedIn bare />, children: guarded(bareRoutes) },
      { element: <SignedIn />, children: guarded(framedRoutes) },
      { element: <Public />, children: guarded(openFramedRoutes) },
    ],
  },
]);

export function App() {
  return (
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  );
}
