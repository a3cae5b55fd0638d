// An icon's URL: typed, or picked from those of this deployment. The list loads when it is opened.
import { ImagePlus } from "lucide-react";
import { lazy, Suspense, useId, useState } from "react";

import { Avatar } from "../Avatar";
import { IconButton } from "../Button";
import { TextField } from "./Field";
import { SkeletonRows } from "../Loading";
import { Popover } from "../Popover";

const IconPicker = lazy(() => import("./IconPicker"));

interface IconFieldProps {
  label?: string;
  value: string;
  onChange: (value: string) => void;
  problem?: string | undefined;
}

export function IconField({ label = "Icon", value, onChange, problem }: IconFieldProps) {
  const id = useId();
  const [open, setOpen] = useState(false);
  return (
    <TextField
      id={id}
      label={label}
      autoComplete="off"
      hint="Icon URL, such as /icon/docker.svg or https://…"
      value={value}
      problem={problem}
      onChange={onChange}
      control={
        <>
          {value ? (
            <span className="flex h-8.5 items-center" data-testid="icon-preview">
              <Avatar key={value} name="?" src={value} square />
            </span>
          ) : null}
          <Popover
            label="Icons"
            open={open}
            onOpenChange={setOpen}
            className="w-88 p-3"
            trigger={
              <IconButton label="Choose icon" variant="secondary">
                <ImagePlus />
              </IconButton>
            }
          >
            <Suspense fallback={<SkeletonRows rows={3} />}>
              <IconPicker
                onPick={(path) => {
                  onChange(path);
                  setOpen(false);
                }}
              />
            </Suspense>
          </Popover>
        </>
      }
    />
  );
}
