// Templates: the list, creation, and the pages of one template. Both `/templates/:template` and
// `/templates/:organization/:template` address the same pages.
import type { ComponentType } from "react";
import type { RouteObject } from "react-router";

import { around, index, page } from "./page";

/** The same page below both addresses of a template. */
function ofTemplate(
  rest: string,
  load: () => Promise<ComponentType>,
  children?: RouteObject[],
): RouteObject[] {
  const paths = [`/templates/:template${rest}`, `/templates/:organization/:template${rest}`];
  return paths.map((path) => (children ? around(path, load, children) : page(path, load)));
}

const TABS: RouteObject[] = [
  index(async () => (await import("../../pages/templates/RedirectToDocs")).RedirectToDocs),
  page("docs", async () => (await import("../../pages/templates/DocsPage")).DocsPage),
  page("files", async () => (await import("../../pages/templates/FilesPage")).FilesPage),
  page(
    "resources",
    async () => (await import("../../pages/templates/ResourcesPage")).ResourcesPage,
  ),
  page("versions", async () => (await import("../../pages/templates/VersionsPage")).VersionsPage),
  page("embed", async () => (await import("../../pages/templates/EmbedPage")).EmbedPage),
  page("insights", async () => (await import("../../pages/templates/InsightsPage")).InsightsPage),
  page("builds", async () => (await import("../../pages/templates/builds/BuildsPage")).BuildsPage),
  page(
    "prebuilds",
    async () => (await import("../../pages/templates/PrebuildsPage")).PrebuildsPage,
  ),
];

const SETTINGS: RouteObject[] = [
  index(
    async () => (await import("../../pages/templates/settings/GeneralPage")).TemplateGeneralPage,
  ),
  page(
    "permissions",
    async () =>
      (await import("../../pages/templates/settings/PermissionsPage")).TemplatePermissionsPage,
  ),
  page(
    "variables",
    async () =>
      (await import("../../pages/templates/settings/VariablesPage")).TemplateVariablesPage,
  ),
  page(
    "schedule",
    async () => (await import("../../pages/templates/settings/SchedulePage")).TemplateSchedulePage,
  ),
];

export const templateRoutes: RouteObject[] = [
  page(
    "/templates",
    async () => (await import("../../pages/templates/TemplatesPage")).TemplatesPage,
  ),
  page(
    "/templates/new",
    async () => (await import("../../pages/templates/NewTemplatePage")).NewTemplatePage,
  ),
  // The set-up of the first account leads here.
  page(
    "/templates/new/builder",
    async () => (await import("../../pages/templates/builder/BuilderPage")).BuilderPage,
  ),
  page(
    "/starter-templates",
    async () => (await import("../../pages/templates/StarterPage")).StarterGalleryPage,
  ),
  page(
    "/starter-templates/:example",
    async () => (await import("../../pages/templates/StarterPage")).StarterPage,
  ),
  ...ofTemplate(
    "",
    async () => (await import("../../pages/templates/TemplateLayout")).TemplateLayout,
    TABS,
  ),
  ...ofTemplate(
    "/settings",
    async () =>
      (await import("../../pages/templates/settings/SettingsLayout")).TemplateSettingsLayout,
    SETTINGS,
  ),
  ...ofTemplate(
    "/workspace",
    async () =>
      (await import("../../pages/workspaces/create/CreateWorkspacePage")).CreateWorkspacePage,
  ),
  ...ofTemplate(
    "/versions/:version",
    async () => (await import("../../pages/templates/VersionPage")).VersionPage,
  ),
  ...ofTemplate(
    "/versions/:version/edit",
    async () => (await import("../../pages/templates/EditorPage")).EditorPage,
  ),
];
