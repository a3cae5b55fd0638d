import { screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import { chooseProxy } from "../../api/app-base";
import type { Task } from "../../api/types";
import { visit } from "../../test/world";
import { TaskApps } from "./TaskApps";

const app = (slug: string, more: object) => ({
  id: slug,
  slug,
  display_name: slug,
  url: "http://localhost:1",
  external: false,
  hidden: false,
  subdomain: false,
  ...more,
});
const workspace = (fields: object) => ({
  id: "w",
  name: "task-1",
  owner_name: "ana",
  latest_build: { resources: [{ agents: [{ name: "main", apps: [fields] }] }] },
});
const task = {
  id: "t",
  owner_name: "ana",
  workspace_name: "task-1",
  workspace_id: "w",
  workspace_app_id: null,
  status: "active",
} as unknown as Task;
const sydney = {
  id: "s",
  name: "sydney",
  display_name: "",
  icon_url: "",
  healthy: true,
  path_app_url: "https://sydney.test",
  wildcard_hostname: "*.sydney.test",
};
const open = (fields: object) =>
  visit([{ path: "/", element: <TaskApps task={task} /> }], "/", {
    "GET /api/v2/users/ana/workspace/task-1": workspace(fields),
    "GET /api/v2/applications/host": { host: "*.here.test" },
    "GET /api/v2/regions": { regions: [sydney] },
  });

afterEach(() => chooseProxy(""));

it.each([
  ["this server", "", "http://chat--task-1.here.test/"],
  ["the chosen proxy", "s", "http://chat--task-1.sydney.test/"],
])("frames a subdomain application at %s", async (_, proxy, address) => {
  chooseProxy(proxy);
  open(app("chat", { subdomain: true, subdomain_name: "chat--task-1" }));
  expect(await screen.findByTitle("chat")).toHaveAttribute("src", address);
});

it("opens a path application in a new tab, through the proxy", async () => {
  chooseProxy("s");
  open(app("chat", {}));
  expect(await screen.findByRole("link", { name: "Open chat" })).toHaveAttribute(
    "href",
    "https://sydney.test/@ana/task-1.main/apps/chat/",
  );
  expect(screen.queryByTitle("chat")).toBeNull();
});
