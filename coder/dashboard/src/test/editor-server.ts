// A server with one template of two files, for the tests of the template editor.
import { type Answers } from "./world";
import { writeTar } from "../pages/templates/tar";

export const template = {
  id: "t",
  name: "docker",
  display_name: "Docker",
  organization_id: "o",
  organization_name: "coder",
  active_version_id: "v1",
};
export const version = (id: string, status: string, more: object = {}) => ({
  id,
  name: `${id}-name`,
  message: "",
  job: {
    id: `job-${id}`,
    status,
    file_id: "f1",
    tags: { gpu: "a100", scope: "organization" },
    queue_position: 0,
    queue_size: 0,
    ...more,
  },
});
const archive = writeTar([
  { path: "main.tf", data: new TextEncoder().encode("# one") },
  { path: "README.md", data: new TextEncoder().encode("# Docs") },
]);
export const defaults: Answers = {
  "GET /api/v2/organizations/default/templates/docker": template,
  "GET /api/v2/organizations/coder/templates/docker/versions/v1-name": version("v1", "succeeded"),
  "GET /api/v2/templates/t": template,
  "GET /api/v2/files/f1": archive,
  "POST /api/v2/files": { hash: "f2" },
  "POST /api/v2/organizations/o/templateversions": version("v2", "pending"),
  "GET /api/v2/templateversions/v2": version("v2", "succeeded"),
  "GET /api/v2/templateversions/v2/resources": [],
  "PATCH /api/v2/templateversions/v2": {},
  "PATCH /api/v2/templates/t/versions": {},
};

/** jsdom's blobs are not those that `Response` reads. */
export function bytesOf(blob: Blob): Promise<Uint8Array> {
  return new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(new Uint8Array(reader.result as ArrayBuffer));
    reader.readAsArrayBuffer(blob);
  });
}
