// Pages of development builds alone: every part of the design in every state.
import { page } from "./page";
import type { RouteObject } from "react-router";

// The condition is known at build time: in a production build the import below is gone with its page.
export const developmentRoutes: RouteObject[] = import.meta.env.DEV
  ? [
      page(
        "/dev/components",
        async () => (await import("../../pages/dev/ComponentsPage")).ComponentsPage,
      ),
    ]
  : [];
