// Saving a template's settings.
import { useQueryClient } from "@tanstack/react-query";

import { patch } from "../../../api/client";
import type { Template, UpdateTemplateMeta } from "../../../api/types";
import { toast } from "../../../ui/toast";

export function useSaveTemplate(
  template: Template,
): (changes: UpdateTemplateMeta) => Promise<void> {
  const queries = useQueryClient();
  return async (changes) => {
    await patch(`/api/v2/templates/${template.id}`, changes);
    await Promise.all([
      queries.invalidateQueries({ queryKey: ["template"] }),
      queries.invalidateQueries({ queryKey: ["templates"] }),
    ]);
    toast.done("Template settings updated successfully.");
  };
}
