// The appearance of the deployment: reading it and saving parts of it.
import { useQueryClient } from "@tanstack/react-query";

import { get, put } from "../../api/client";
import { appearance } from "../../api/queries/session";
import { serialized } from "../../api/serialized";
import type { AppearanceConfig, UpdateAppearanceConfig } from "../../api/types";
import { toast } from "../../ui/toast";

const APPEARANCE = "/api/v2/appearance";

export const now = () => get<AppearanceConfig>(APPEARANCE);

/**
 * The server replaces the whole setting at once: unchanged parts are read right before saving, not
 * taken from this page's cache, and only after earlier changes of this page have been answered.
 */
export function useSave() {
  const queries = useQueryClient();
  return (change: (current: AppearanceConfig) => Partial<UpdateAppearanceConfig>) =>
    serialized(`${APPEARANCE}, read and written`, async () => {
      const current = await now();
      const { application_name, logo_url, service_banner, announcement_banners } = current;
      await put(APPEARANCE, {
        application_name,
        logo_url,
        service_banner,
        announcement_banners: announcement_banners ?? [],
        ...change(current),
      });
      toast.done("Appearance settings updated successfully.");
      await queries.invalidateQueries({ queryKey: appearance.queryKey });
    });
}
