import { useQuery } from "@tanstack/react-query";
import { waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { visit } from "../test/world";

beforeEach(() => vi.resetModules());
afterEach(() => {
  document.head.innerHTML = "";
});

it.each([
  ["nothing is known", null, undefined, "Users - Coder"],
  ["the page says it", "Works", undefined, "Users - Works"],
  ["the deployment has been given another", "Works", "Forge", "Users - Forge"],
  ["the deployment has lost its own", "Works", "", "Users - Coder"],
])("ends in the deployment's name: %s", async (_, inPage, name, title) => {
  document.head.innerHTML =
    inPage === null ? "" : `<meta property="application-name" content="${inPage}">`;
  const { useTitle } = await import("./title");
  const { appearance } = await import("../api/queries/session");
  function Page() {
    useTitle("Users", "");
    useQuery({ ...appearance, enabled: name !== undefined });
    return null;
  }
  visit([{ path: "/", Component: Page }], "/", {
    "GET /api/v2/appearance": { application_name: name },
  });
  await waitFor(() => expect(document.title).toBe(title));
});
