import { Navigate, useLocation } from "react-router";

/** A template's own address redirects to its documentation. */
export function RedirectToDocs() {
  return <Navigate to={`${useLocation().pathname.replace(/\/$/, "")}/docs`} replace />;
}
