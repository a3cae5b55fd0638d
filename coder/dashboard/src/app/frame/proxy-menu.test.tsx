import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { chooseProxy } from "../../api/app-base";
import { visit } from "../../test/world";
import { ProxyMenu } from "./ProxyMenu";

vi.mock("../../features/proxy/latency", async (original) => ({
  ...(await original<object>()),
  measure: async (address: string) => (address.includes("sydney") ? 280 : 12),
}));

const region = (id: string, more: object = {}) => ({
  id,
  name: id,
  display_name: "",
  icon_url: "",
  healthy: true,
  path_app_url: `https://${id}.test`,
  wildcard_hostname: "",
  ...more,
});
const show = (regions: object[]) =>
  visit([{ path: "/", Component: ProxyMenu }], "/", { "GET /api/v2/regions": { regions } });

beforeEach(() => chooseProxy(""));
afterEach(() => chooseProxy(""));

it("is hidden without proxies", async () => {
  const page = show([region("primary")]);
  await waitFor(() => expect(page.requests).toContain("GET /api/v2/regions"));
  await act(async () => undefined);
  expect(screen.queryByTestId("proxy-menu")).toBeNull();
});

it("shows latencies and keeps the choice", async () => {
  show([
    region("primary", { display_name: "Home" }),
    region("sydney"),
    region("gone", { healthy: false }),
  ]);
  expect(
    await screen.findByRole("button", { name: /through Home, 12 milliseconds/ }),
  ).toBeVisible();
  await userEvent.click(screen.getByTestId("proxy-menu"));
  expect(await screen.findByText("280 ms")).toBeVisible();
  expect(screen.getByRole("menuitem", { name: /gone/ })).toHaveAttribute("aria-disabled", "true");
  await userEvent.click(screen.getByRole("menuitem", { name: /sydney/ }));
  expect(await screen.findByRole("button", { name: /through sydney/ })).toBeVisible();
  expect(window.localStorage.getItem("user-proxy")).toBe("sydney");
});
