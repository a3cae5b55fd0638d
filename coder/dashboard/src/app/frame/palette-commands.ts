// What a person typed into the palette, as a command on a workspace: "stop api-dev", "extend 2h",
// "copy ssh api-dev".
export const VERBS = ["start", "stop", "restart", "terminal", "extend", "copy"] as const;
export type Verb = (typeof VERBS)[number];

export interface Command {
  verb: Verb;
  /** Part of the workspace's name; "" for any. */
  name: string;
  /** Hours of "extend". */
  hours: number;
}

const MOST_HOURS = 24;

/** Return the command in `text`, or null for a plain search. */
export function commandOf(text: string): Command | null {
  const [first = "", ...rest] = text.toLowerCase().trim().split(/\s+/);
  const verb = VERBS.find((item) => item === first);
  if (verb === undefined) return null;
  let hours = 1;
  const names = rest.filter((word) => {
    if (verb === "copy" && word === "ssh") return false;
    const span = verb === "extend" ? /^(\d{1,2})h$/.exec(word)?.[1] : undefined;
    if (span === undefined) return true;
    hours = Math.min(MOST_HOURS, Math.max(1, Number(span)));
    return false;
  });
  return { verb, name: names.join(" "), hours };
}

/** The label of a command for a workspace; also what the typed words are compared with. */
export function labelOf({ verb, hours }: Command, workspace: string): string {
  switch (verb) {
    case "terminal":
      return `Terminal ${workspace}`;
    case "extend":
      return `Extend ${hours}h ${workspace}`;
    case "copy":
      return `Copy SSH command ${workspace}`;
    default:
      return `${verb.charAt(0).toUpperCase()}${verb.slice(1)} ${workspace}`;
  }
}
