import { screen } from "@testing-library/react";
import type { ComponentType } from "react";
import { expect, it, vi } from "vitest";

import { visit } from "../../test/world";
import { AuditPage } from "./AuditPage";
import { ConnectionLogPage } from "./ConnectionLogPage";

const PAGES: readonly (readonly [string, ComponentType, string])[] = [
  ["the audit log", AuditPage, "/api/v2/audit"],
  ["the connection log", ConnectionLogPage, "/api/v2/connectionlog"],
];

it.each(PAGES)("sends no request for %s without permission", async (log, Log, path) => {
  const answerMock = vi.fn(() => ({}));
  visit([{ path: "/", element: <Log /> }], "/", {
    "POST /api/v2/authcheck": ({ checks }: { checks: object }) =>
      Object.fromEntries(Object.keys(checks).map((name) => [name, false])),
    [`GET ${path}`]: answerMock,
    "GET /api/v2/organizations": [],
  });
  expect(
    await screen.findByRole("heading", { level: 1, name: `You need permission to view ${log}` }),
  ).toBeVisible();
  expect(answerMock).not.toHaveBeenCalled();
});
