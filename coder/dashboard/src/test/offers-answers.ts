// Server answers for the pages whose controls are checked.
import { type Answers } from "./world";
import type { Workspace } from "../api/types";

const AT = "2026-01-01T00:00:00Z";
const template = {
  id: "t",
  name: "box",
  display_name: "Box",
  description: "",
  icon: "",
  organization_id: "o",
  organization_name: "org",
  active_version_id: "v",
  deprecated: false,
  active_user_count: 1,
  build_time_stats: {},
  updated_at: AT,
  created_by_name: "ben",
};
const version = {
  id: "v",
  name: "first",
  created_by: { username: "ben" },
  created_at: AT,
  job: { id: "j", file_id: "f", status: "succeeded", tags: {} },
};
const build = {
  id: "b",
  status: "stopped",
  transition: "start",
  created_at: AT,
  resources: [],
  template_version_id: "v",
  job: { id: "j", status: "succeeded" },
};
export const workspace = {
  id: "w",
  name: "lab",
  owner_id: "somebody",
  owner_name: "ben",
  organization_id: "o",
  organization_name: "org",
  template_id: "t",
  template_name: "box",
  template_display_name: "Box",
  template_icon: "",
  health: { healthy: true },
  latest_build: build,
} as unknown as Workspace;
export const failed = {
  ...workspace,
  latest_build: {
    ...build,
    status: "failed",
    job: { id: "j", status: "failed", error: "exit status 1" },
  },
} as unknown as Workspace;
const task = {
  id: "k",
  name: "mend",
  display_name: "Mend",
  organization_id: "o",
  owner_id: "somebody",
  owner_name: "ben",
  initial_prompt: "",
  status: "active",
  current_state: null,
  created_at: AT,
  workspace_name: "x",
  template_name: "box",
  template_icon: "",
};

export const ANSWERS: Answers = {
  "GET /api/v2/users/me": {
    id: "me",
    username: "ana",
    name: "",
    email: "",
    organization_ids: ["o"],
    roles: [],
  },
  "GET /api/v2/buildinfo": { version: "v2" },
  "GET /api/v2/appearance": {},
  "GET /api/v2/organizations": [{ id: "o", name: "org", display_name: "", is_default: true }],
  "GET /api/v2/experiments": ["oauth2"],
  "GET /api/v2/workspaces": { workspaces: [workspace], count: 1 },
  "GET /api/v2/users/ben/workspace/lab": workspace,
  "GET /api/v2/templates": [template],
  "GET /api/v2/templates/t": { ...template, max_port_share_level: "public" },
  "GET /api/v2/templates/examples": [
    { id: "docker", name: "Docker", description: "", icon: "", tags: [], markdown: "text" },
  ],
  "GET /api/v2/organizations/default/templates/box": template,
  "GET /api/v2/organizations/org/templates/box": template,
  "GET /api/v2/organizations/org/templates/box/versions/first": version,
  "GET /api/v2/templateversions/v": version,
  "GET /api/v2/templateversions/v/rich-parameters": [],
  "GET /api/v2/templateversions/v/presets": [],
  "GET /api/v2/templateversions/v/external-auth": [],
  "GET /api/v2/workspacebuilds/b/parameters": [],
  "GET /api/v2/files/f": new Uint8Array(1024),
  "GET /api/v2/tasks": { tasks: [task], count: 1 },
  "GET /api/v2/applications/host": { host: "*.apps.example.com" },
  "GET /api/v2/regions": { regions: [] },
  "GET /api/v2/workspaceagents/a/listening-ports": {
    ports: [{ port: 5173, process_name: "node" }],
  },
  "GET /api/v2/workspaces/w/port-share": { shares: [] },
  "GET /api/v2/oauth2-provider/apps/a": {
    id: "a",
    name: "wiki",
    callback_url: "https://wiki.example.com",
    icon: "",
    endpoints: { authorization: "", token: "", device_authorization: "" },
  },
  "GET /api/v2/oauth2-provider/apps/a/secrets": [],
};
