// Starter templates by what they need, with those that work at once first.
import type { TemplateExample } from "../../../api/types";

export interface ExampleGroup {
  title: string;
  hint: string;
  examples: TemplateExample[];
}

/** A starter belongs to the first group of which it has a tag; one without tags needs nothing. */
const GROUPS: readonly (readonly [title: string, hint: string, tags: readonly string[]])[] = [
  ["Works right away", "Needs no cloud, cluster or Docker.", ["local", "external", "scratch"]],
  ["Docker", "Needs Docker on the provisioner’s machine.", ["docker"]],
  [
    "Cloud machines",
    "Needs an account of the provider and its credentials on the provisioner’s machine.",
    ["aws", "azure", "gcp", "digitalocean"],
  ],
  ["Clusters", "Needs access to the cluster from the provisioner’s machine.", []],
];

/** The starters that match every typed word, in their groups; no empty group. */
export function groupExamples(examples: readonly TemplateExample[], text = ""): ExampleGroup[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = GROUPS.map(([title, hint]) => ({
    title,
    hint,
    examples: [] as TemplateExample[],
  }));
  for (const example of examples) {
    const own = `${example.name} ${example.description} ${example.tags.join(" ")}`.toLowerCase();
    if (!words.every((word) => own.includes(word))) continue;
    const tags = example.tags.length === 0 ? ["scratch"] : example.tags;
    const at = GROUPS.findIndex(([, , wanted]) => wanted.some((tag) => tags.includes(tag)));
    groups.at(at)?.examples.push(example); // -1: the last group
  }
  return groups.filter((group) => group.examples.length > 0);
}
