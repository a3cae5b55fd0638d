// Pages of development builds only: every UI component in every state.
import { page } from "./page";
import type { RouteObject } from "react-router";

// The condition is known at build time: a production build drops the import below with its page.
export const developmentRoutes: RouteObject[] = import.meta.env.DEV
  ? [
      page(
        "/dev/components",
        async () => (await import("../../pages/dev/ComponentsPage")).ComponentsPage,
      ),
    ]
  : [];
