// Narrow views of API types for components.
export type { Workspace, WorkspaceAgent } from "../api/types";
import type { WorkspaceBuild } from "../api/types";
export type WorkspaceStatus = WorkspaceBuild["status"];
