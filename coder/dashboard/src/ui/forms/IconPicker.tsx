// The picker of the icon field: a search over the icons of this deployment.
import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { Link } from "react-router";

import { matching, nameOf, pictures } from "../../api/queries/pictures";
import { Failure } from "../Failure";
import { TextField } from "./Field";

const SHOWN = 63;

export default function IconPicker({ onPick }: { onPick: (path: string) => void }) {
  const [text, setText] = useState("");
  const all = useQuery(pictures);
  const matches = matching(all.data ?? [], useDeferredValue(text));
  return (
    <div className="flex flex-col gap-3">
      <TextField
        label="Search icons"
        hideLabel
        type="search"
        autoFocus
        placeholder="docker, database, rocket…"
        value={text}
        onChange={setText}
      />
      {all.isError ? <Failure error={all.error} retry={() => void all.refetch()} /> : null}
      <ul aria-label="Icons" className="grid grid-cols-7 gap-1">
        {matches.slice(0, SHOWN).map((picture) => (
          <li key={picture.path}>
            <button
              type="button"
              title={nameOf(picture)}
              aria-label={nameOf(picture)}
              className="grid size-10 place-items-center rounded-md hover:bg-hover"
              onClick={() => onPick(picture.path)}
            >
              <img src={picture.path} alt="" loading="lazy" className="size-6 object-contain" />
            </button>
          </li>
        ))}
      </ul>
      <p role="status" className="text-sm text-muted">
        {matches.length > SHOWN
          ? `Showing the first ${SHOWN} of ${matches.length}. `
          : all.data && matches.length === 0
            ? "No results. "
            : ""}
        <Link to="/icons" target="_blank" className="font-medium text-accent-text hover:underline">
          View all icons
        </Link>
      </p>
    </div>
  );
}
