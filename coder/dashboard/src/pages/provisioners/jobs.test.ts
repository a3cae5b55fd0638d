import { describe, expect, it } from "vitest";

import { cancelPath, jobLink, jobTitle } from "./jobs";

const metadata = {
  template_version_name: "v1",
  template_id: "t",
  template_name: "docker",
  template_display_name: "Docker",
  template_icon: "",
};
const build = {
  type: "workspace_build" as const,
  metadata: { ...metadata, workspace_name: "dev", workspace_build_transition: "stop" as const },
  input: { workspace_build_id: "b1" },
};
const imported = {
  type: "template_version_import" as const,
  metadata,
  input: { template_version_id: "v1" },
};
const dryRun = {
  type: "template_version_dry_run" as const,
  metadata,
  input: { template_version_id: "v1" },
};
const first = {
  type: "template_version_import" as const,
  metadata: { ...metadata, template_name: "", template_display_name: "" },
  input: {},
};

describe("job", () => {
  it.each([
    [build, "Stop workspace dev"],
    [imported, "Import a version of Docker"],
    [first, "Import a new template"],
  ])("%# has a title", (job, title) => expect(jobTitle(job)).toBe(title));
  it.each([
    [build, "/workspaces?filter=name%3A%22dev%22"],
    [imported, "/templates/coder/docker/versions"],
    [first, null],
  ])("%# has a link", (job, to) => expect(jobLink(job, "coder")).toBe(to));
  it.each([
    [build, "/api/v2/workspacebuilds/b1/cancel"],
    [imported, "/api/v2/templateversions/v1/cancel"],
    [dryRun, "/api/v2/templateversions/v1/dry-run/j1/cancel"],
    [first, null],
  ])("%# has a cancel address", (job, path) => expect(cancelPath({ id: "j1", ...job })).toBe(path));
});
