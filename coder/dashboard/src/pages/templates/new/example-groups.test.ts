import { expect, it } from "vitest";

import type { TemplateExample } from "../../../api/types";
import { groupExamples } from "./example-groups";

const example = (name: string, ...tags: string[]): TemplateExample => ({
  id: name,
  name,
  tags,
  description: `About ${name}`,
  icon: "",
  url: "",
  markdown: "",
});
const ALL = [
  example("AWS EC2", "vm", "linux", "aws"),
  example("Docker Containers", "docker", "container"),
  example("Externally Managed", "external", "linux"),
  example("Kubernetes", "kubernetes", "container"),
  example("Local Process", "local", "linux"),
  example("Nomad", "nomad", "container"),
  example("Scratch"),
];
const shown = (text?: string) =>
  groupExamples(ALL, text).map((group) => [
    group.title,
    ...group.examples.map((item) => item.name),
  ]);

it("lists what works without a cloud first", () => {
  expect(shown()).toEqual([
    ["Works right away", "Externally Managed", "Local Process", "Scratch"],
    ["Docker", "Docker Containers"],
    ["Cloud machines", "AWS EC2"],
    ["Clusters", "Kubernetes", "Nomad"],
  ]);
});

it.each([
  ["nomad", [["Clusters", "Nomad"]]],
  ["LINUX aws", [["Cloud machines", "AWS EC2"]]],
  ["about docker", [["Docker", "Docker Containers"]]],
  ["nothing of this", []],
])("finds %j in names, descriptions and tags", (text, expected) => {
  expect(shown(text)).toEqual(expected);
});
