// Tags that match jobs with provisioners.
import { Tag } from "../../ui/Badge";

/** `scope=organization` and an empty owner are on every job: they are not shown. */
export function tagEntries(tags: unknown): [string, string][] {
  if (typeof tags !== "object" || tags === null) return [];
  return Object.entries(tags as Record<string, string>).filter(
    ([name, value]) =>
      !(name === "owner" && value === "") && !(name === "scope" && value === "organization"),
  );
}

export function Tags({ tags, emptyText = "any" }: { tags: unknown; emptyText?: string }) {
  const entries = tagEntries(tags);
  if (entries.length === 0) return <span className="text-sm text-muted">{emptyText}</span>;
  return (
    <span className="flex flex-wrap gap-1">
      {entries.map(([name, value]) => (
        <Tag key={name}>
          {name}={value}
        </Tag>
      ))}
    </span>
  );
}

/** "os=linux gpu=yes" as tags; null when a word has no "=". */
export function readTags(text: string): Record<string, string> | null {
  const words = text.split(/[\s,]+/).filter(Boolean);
  if (words.some((word) => !/^[^=]+=/.test(word))) return null;
  return Object.fromEntries(
    words.map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]),
  );
}
