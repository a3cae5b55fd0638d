import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useEffect, useState } from "react";
import { Link, Outlet } from "react-router";
import { expect, it } from "vitest";

import { visit } from "../../test/world";
import { useTitle } from "../../ui/title";
import { PageAnnouncer } from "./PageAnnouncer";

function Late() {
  const [name, setName] = useState("");
  useEffect(() => {
    const timer = window.setTimeout(() => setName("docker"), 50);
    return () => window.clearTimeout(timer);
  }, []);
  useTitle(name, "Templates");
  return <h1>Late</h1>;
}
function First() {
  useTitle("Workspaces");
  return <Link to="/late">Go</Link>;
}

it("announces the title of a page that the router opens, once it is complete", async () => {
  const routes = [
    {
      element: (
        <>
          <PageAnnouncer />
          <Outlet />
        </>
      ),
      children: [
        { path: "/", Component: First },
        { path: "/late", Component: Late },
      ],
    },
  ];
  visit(routes, "/", {});
  await userEvent.click(await screen.findByRole("link", { name: "Go" }));
  const status = screen.getByRole("status", { name: "Page" });
  expect(status).toBeEmptyDOMElement(); // the document's own load is announced by the browser
  await waitFor(() => expect(status).toHaveTextContent("docker - Templates - Coder"));
});
