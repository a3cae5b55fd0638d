import { afterEach, describe, expect, it } from "vitest";

import { addressOf } from "../pages/workspace/agent/app-address";
import { chooseProxy, placeOf } from "./app-place";
import type { Region, Workspace, WorkspaceAgent, WorkspaceApp } from "./types";

const sydney: Region = { id: "s", name: "sydney", display_name: "Sydney", icon_url: "", healthy: true, path_app_url: "https://sydney.test/", wildcard_hostname: "*.sydney.test" };
const workspace = { owner_name: "ana", owner_id: "u", name: "lab" } as Workspace;
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

describe("an external application's address", () => {
  const address = (url: string, viewer = "u") => addressOf(app({ external: true, url }), workspace, agent, placeOf(undefined, ""), viewer);

  it.each(["vscode", "vscode-insiders", "cursor", "windsurf", "jetbrains", "jetbrains-gateway", "JetBrains", "zed", "fleet", "our-editor"])("carries its viewer's key to %s", (scheme) => {
    expect(address(`${scheme}://open?token=$SESSION_TOKEN`)).toBe(`${scheme}://open?token=$SESSION_TOKEN`);
  });

  it.each(["http", "https", "HTTPS", "HtTp", "ws", "wss", "ftp", "ftps", "sftp", "ssh", "git", "mailto", "sms", "intent", "web+thing", "ms-word", "ms-excel", "search-ms", "git+ssh"])("carries no key by %s", (scheme) => {
    expect(address(`${scheme}://evil.test/?a=$SESSION_TOKEN&b=$SESSION_TOKEN`)).toBe(`${scheme}://evil.test/?a=&b=`);
  });

  it.each(["somebody", ""])("carries no key where its viewer is not the owner: %j", (viewer) => expect(address("vscode://open?token=$SESSION_TOKEN", viewer)).toBe("vscode://open?token="));

  it.each(["javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)", "\tjavascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "blob:https://x", "about:blank", "view-source:https://x", " https://x/$SESSION_TOKEN", "C:\\x.exe", "\\\\host\\x.exe", "-x", "//evil.test", "/x", ""])("is none: %j", (url) => expect(address(url)).toBeNull());
});
