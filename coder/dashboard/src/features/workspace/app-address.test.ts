import { afterEach, describe, expect, it } from "vitest";

import { addressOf } from "./app-address";
import { chooseProxy, baseOf } from "../../api/app-base";
import type { Region, Workspace, WorkspaceAgent, WorkspaceApp } from "../../api/types";

const sydney: Region = {
  id: "s",
  name: "sydney",
  display_name: "Sydney",
  icon_url: "",
  healthy: true,
  path_app_url: "https://sydney.test/",
  wildcard_hostname: "*.sydney.test",
};
const workspace = { owner_name: "ana", owner_id: "u", name: "lab" } as Workspace;
const agent = { name: "main" } as WorkspaceAgent;
const app = (more: Partial<WorkspaceApp>) =>
  ({
    slug: "code",
    url: "http://localhost:1",
    subdomain: false,
    external: false,
    ...more,
  }) as WorkspaceApp;

afterEach(() => chooseProxy(""));

describe("base address of applications", () => {
  it.each([
    [
      "by path at the proxy",
      baseOf(sydney, "*.here.test"),
      app({}),
      "https://sydney.test/@ana/lab.main/apps/code/",
    ],
    [
      "by host below the proxy",
      baseOf(sydney, "*.here.test"),
      app({ subdomain: true, subdomain_name: "code--lab" }),
      "http://code--lab.sydney.test/",
    ],
    [
      "by path at this server",
      baseOf(undefined, "*.here.test"),
      app({}),
      "/@ana/lab.main/apps/code/",
    ],
    [
      "a command in a terminal of this server",
      baseOf(sydney, ""),
      app({ command: "htop" }),
      "/@ana/lab.main/terminal?app=code",
    ],
    [
      "nowhere without a wildcard",
      baseOf(undefined, ""),
      app({ subdomain: true, subdomain_name: "x" }),
      null,
    ],
  ])("%s", (_, base, application, address) =>
    expect(addressOf(application, workspace, agent, base)).toBe(address),
  );

  it.each([
    ["is ill", { ...sydney, healthy: false }],
    ["is this server", { ...sydney, name: "primary" }],
    ["has not registered", { ...sydney, path_app_url: "" }],
  ])("is this server when the chosen proxy %s", (_, proxy) =>
    expect(baseOf(proxy, "*.here.test")).toEqual({ path: "", host: "*.here.test" }),
  );

  it("keeps the server's wildcard host if the proxy has none", () =>
    expect(baseOf({ ...sydney, wildcard_hostname: "" }, "*.here.test").host).toBe("*.here.test"));
});

describe("external application's address", () => {
  const base = { ...baseOf(undefined, ""), server: "https://coder.test" };
  const address = (url: string, viewer = "u") =>
    addressOf(app({ external: true, url }), workspace, agent, base, viewer);

  it.each([
    "vscode",
    "vscode-insiders",
    "vscodium",
    "cursor",
    "windsurf",
    "positron",
    "kiro",
    "trae",
    "antigravity",
    "jetbrains",
    "jetbrains-gateway",
    "JetBrains",
    "zed",
    "fleet",
    "coder",
  ])("carries the viewer's token to %s", (scheme) => {
    expect(address(`${scheme}://open?token=$SESSION_TOKEN`)).toBe(
      `${scheme}://open?token=$SESSION_TOKEN`,
    );
  });

  // Unlisted and unknown schemes belong to no program known to keep a token.
  it.each([
    "http",
    "https",
    "HTTPS",
    "HtTp",
    "ws",
    "wss",
    "ftp",
    "ftps",
    "sftp",
    "ssh",
    "git",
    "mailto",
    "sms",
    "intent",
    "web+thing",
    "ms-word",
    "ms-excel",
    "search-ms",
    "git+ssh",
    "slack",
    "zoommtg",
    "steam",
    "x-apple-helpbasic",
    "our-editor",
    "vscode2",
    "xvscode",
    "vscode.x",
    "vscode+https",
  ])("carries no token by %s", (scheme) => {
    expect(address(`${scheme}://evil.test/?a=$SESSION_TOKEN&b=$SESSION_TOKEN`)).toBe(
      `${scheme}://evil.test/?a=&b=`,
    );
  });

  // The address names the server to sign in at, and may contain workspace parameters.
  const encodedOrigin = encodeURIComponent(window.location.origin);
  it.each([
    `vscode://coder.coder-remote/open?url=${encodedOrigin}&token=$SESSION_TOKEN`,
    "cursor://coder.coder-remote/open?url=https://coder.test/&token=$SESSION_TOKEN",
    "jetbrains-gateway://connect#type=coder&url=https://coder.test&token=$SESSION_TOKEN&ide_download_link=https://ides.test/x",
  ])("carries a token to this server by %s", (url) => expect(address(url)).toBe(url));
  it.each([
    "url=https://evil.test",
    "url=https%3A%2F%2Fevil.test",
    "%75rl=https://evil.test",
    "URL=https://evil.test",
    "url=https://coder.test.evil.test",
    "url=http://coder.test",
    "url=https://coder.test@evil.test",
    "url=https://coder.test\\@evil.test",
    "u\trl=https://evil.test",
    "url=https://coder.test/@eve/lab/apps/x",
    "url=evil.test",
    "url=//evil.test",
    "url=",
    `url=${encodedOrigin}&folder=x&url=https://evil.test`,
    `folder=x%26url%3Dhttps://evil.test&url=${encodedOrigin}`,
    `folder=x%2526url%253Dhttps://evil.test&url=${encodedOrigin}`,
    `folder=x%23url=https://evil.test&url=${encodedOrigin}`,
    "folder=%zz",
    `folder=${"%25".repeat(1)}${"25".repeat(9)}20x`,
    "url=data:x",
  ])("carries no token to another server: %s", (where) => {
    for (const start of ["vscode://coder.coder-remote/open?", "jetbrains-gateway://connect#"])
      expect(address(`${start}${where}&token=$SESSION_TOKEN`)).toBe(`${start}${where}&token=`);
  });

  it.each(["somebody", ""])("carries no token for a viewer who is not the owner: %j", (viewer) =>
    expect(address("vscode://open?token=$SESSION_TOKEN", viewer)).toBe("vscode://open?token="),
  );

  it.each([
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "\tjavascript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "file:///etc/passwd",
    "blob:https://x",
    "about:blank",
    "view-source:https://x",
    " https://x/$SESSION_TOKEN",
    "C:\\x.exe",
    "\\\\host\\x.exe",
    "-x",
    "//evil.test",
    "/x",
    "",
  ])("rejects %j", (url) => expect(address(url)).toBeNull());
});
