import { afterEach, describe, expect, it } from "vitest";

import { addressOf } from "../pages/workspace/agent/app-address";
import { chooseProxy, placeOf } from "./app-place";
import type { Region, Workspace, WorkspaceAgent, WorkspaceApp } from "./types";

const sydney: Region = { id: "s", name: "sydney", display_name: "Sydney", icon_url: "", healthy: true, path_app_url: "https://sydney.test/", wildcard_hostname: "*.sydney.test" };
const workspace = { owner_name: "ana", name: "lab" } as Workspace;
const agent = { name: "main" } as WorkspaceAgent;
const app = (more: Partial<WorkspaceApp>) => ({ slug: "code", url: "http://localhost:1", subdomain: false, external: false, ...more }) as WorkspaceApp;

afterEach(() => chooseProxy(""));

describe("where an application opens", () => {
  it.each([
    ["by path at the proxy", placeOf(sydney, "*.here.test"), app({}), "https://sydney.test/@ana/lab.main/apps/code/"],
    ["by host below the proxy", placeOf(sydney, "*.here.test"), app({ subdomain: true, subdomain_name: "code--lab" }), "http://code--lab.sydney.test/"],
    ["by path at this server", placeOf(undefined, "*.here.test"), app({}), "/@ana/lab.main/apps/code/"],
    ["a command in a terminal of this server", placeOf(sydney, ""), app({ command: "htop" }), "/@ana/lab.main/terminal?app=code"],
    ["nowhere without a wildcard", placeOf(undefined, ""), app({ subdomain: true, subdomain_name: "x" }), null],
  ])("%s", (_, place, one, address) => expect(addressOf(one, workspace, agent, place)).toBe(address));

  it.each([
    ["is ill", { ...sydney, healthy: false }],
    ["is this server", { ...sydney, name: "primary" }],
    ["has not registered", { ...sydney, path_app_url: "" }],
  ])("is this server when the chosen proxy %s", (_, proxy) => expect(placeOf(proxy, "*.here.test")).toEqual({ path: "", host: "*.here.test" }));

  it("keeps the server's own hosts where the proxy has none", () => expect(placeOf({ ...sydney, wildcard_hostname: "" }, "*.here.test").host).toBe("*.here.test"));
});
