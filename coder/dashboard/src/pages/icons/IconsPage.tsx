// All icons of this deployment, with a search; a click copies the path.
import { useQuery } from "@tanstack/react-query";
import { Check, ImageOff } from "lucide-react";
import { useDeferredValue, useEffect, useState } from "react";
import { useSearchParams } from "react-router";

import { matching, nameOf, pictures, type Picture } from "../../api/queries/pictures";
import { Button } from "../../ui/Button";
import { cx } from "../../ui/cx";
import { copyOrReport } from "../../ui/text/clipboard";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { TextField } from "../../ui/forms/Field";
import { useTyped } from "../../ui/lists/typed";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { countedAtStart } from "../../lib/words";

const AT_ONCE = 240;
const SHOWN_MS = 2000;
const CREDITS = [
  ["Twemoji", "https://github.com/jdecked/twemoji", "CC BY 4.0"],
  ["SVG Logos", "https://github.com/gilbarbara/logos", "CC0"],
  ["Devicon", "https://github.com/devicons/devicon", "MIT"],
  ["Simple Icons", "https://github.com/simple-icons/simple-icons", "CC0"],
  ["Lucide", "https://github.com/lucide-icons/lucide", "ISC"],
] as const;

export function IconsPage() {
  useTitle("Icons");
  const [params, setParams] = useSearchParams();
  const { text, setText } = useTyped(params.get("q") ?? "", (q) =>
    setParams(q ? { q } : {}, { replace: true }),
  );
  const needle = useDeferredValue(text);
  const [count, setCount] = useState(AT_ONCE);
  const all = useQuery(pictures);
  const matches = matching(all.data ?? [], needle);
  return (
    <>
      <PageHead
        title="Icons"
        description={
          "Icons for templates, applications, parameters and organizations. Paste the " +
          "path into an icon field, or into the icon attribute of a Terraform block."
        }
      />
      <div className="mb-4 max-w-md">
        <TextField
          label="Search icons"
          hideLabel
          type="search"
          placeholder="docker, database, rocket…"
          value={text}
          onChange={(q) => {
            setCount(AT_ONCE);
            setText(q);
          }}
        />
      </div>
      {all.isPending ? <SkeletonRows /> : null}
      {all.isError ? <Failure error={all.error} retry={() => void all.refetch()} /> : null}
      {all.data ? (
        <p role="status" className="mb-3 text-sm text-muted">
          {countedAtStart(matches.length, "icon")}
        </p>
      ) : null}
      {all.data && matches.length === 0 ? (
        <Empty icon={ImageOff} title="No icons found">
          You can also use the URL of any image on the web.
        </Empty>
      ) : null}
      <ul
        aria-label="Icons"
        className="grid grid-cols-[repeat(auto-fill,minmax(7.5rem,1fr))] gap-2"
      >
        {matches.slice(0, count).map((entry) => (
          <li key={entry.path}>
            <Tile picture={entry} />
          </li>
        ))}
      </ul>
      {matches.length > count ? (
        <div className="mt-4 flex justify-center">
          <Button onClick={() => setCount(count + AT_ONCE)}>Show more</Button>
        </div>
      ) : null}
      <p className="mt-8 text-sm text-muted">
        Icons by{" "}
        {CREDITS.map(([name, address, licence], index) => (
          <span key={name}>
            {index > 0 ? ", " : ""}
            <a
              className="underline hover:text-text"
              href={address}
              target="_blank"
              rel="noreferrer"
            >
              {name}
            </a>{" "}
            ({licence})
          </span>
        ))}
        . Trademarks belong to their owners.
      </p>
    </>
  );
}

function Tile({ picture }: { picture: Picture }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = window.setTimeout(() => setCopied(false), SHOWN_MS);
    return () => window.clearTimeout(timer);
  }, [copied]);
  return (
    <button
      type="button"
      title={picture.path}
      onClick={() => void copyOrReport(picture.path).then(setCopied)}
      className={cx(
        "flex h-26 w-full flex-col items-center justify-center gap-2 rounded-lg border",
        "border-line bg-surface px-2 text-center hover:border-line-strong hover:bg-hover",
      )}
    >
      <img src={picture.path} alt="" loading="lazy" className="size-9 object-contain" />
      <span className="sr-only">Copy {picture.path}</span>
      {copied ? (
        <span role="status" className="flex items-center gap-1 text-sm font-medium text-good">
          <Check className="size-4" aria-hidden="true" />
          Copied
        </span>
      ) : (
        <span className="line-clamp-2 text-xs text-muted [overflow-wrap:anywhere]">
          {nameOf(picture)}
        </span>
      )}
    </button>
  );
}
