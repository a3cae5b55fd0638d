// What a new template is made of, and what its form proposes.
import type { ProvisionerTags } from "../TagEditor";

export interface Source {
  body: { file_id: string } | { example_id: string };
  name: string;
  display: string;
  description: string;
  icon: string;
  title: string;
  /** Name of the archive, which the user may take back. */
  archive?: { name: string; onRemove: () => void };
  /** The step before this form, instead of leaving it. */
  back?: { text: string; onBack: () => void };
  organization?: string;
  tags?: ProvisionerTags;
}
