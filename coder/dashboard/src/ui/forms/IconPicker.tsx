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
  const found = matching(all.data ?? [], useDeferredValue(text));
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
        {found.slice(0, SHOWN).map((one) => (
          <li key={one.path}>
            <button
              type="button"
              title={nameOf(one)}
              aria-label={nameOf(one)}
              className="grid size-10 place-items-center rounded-md hover:bg-hover"
              onClick={() => onPick(one.path)}
            >
              <img src={one.path} alt="" loading="lazy" className="size-6 object-contain" />
            </button>
          </li>
        ))}
      </ul>
      <p role="status" className="text-sm text-muted">
        {found.length > SHOWN
          ? `Showing the first ${SHOWN} of ${found.length}. `
          : all.data && found.length === 0
            ? "No results. "
            : ""}
        <Link to="/icons" target="_blank" className="font-medium text-accent-text hover:underline">
          View all icons
        </Link>
      </p>
    </div>
  );
}
