// The announcement banners of the deployment.
import { Megaphone, Pencil, Plus, Trash2 } from "lucide-react";
import { useId, useState } from "react";

import { appearance } from "../../api/queries/session";
import type { AppearanceConfig, BannerConfig } from "../../api/types";
import { Button, IconButton } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { useChoice } from "../../ui/forms/choice";
import { FormProblems, useSettingsForm } from "../../ui/forms/conflict";
import { Confirm } from "../../ui/Confirm";
import { Dialog } from "../../ui/Dialog";
import { Empty } from "../../ui/Empty";
import { Switch } from "../../ui/forms/Toggle";
import { TextArea, TextField } from "../../ui/forms/Field";
import { useSave, now } from "./appearance";

const COLOUR = "#004852";
const textOf = (banner: BannerConfig | undefined) => ({
  message: banner?.message ?? "",
  background_color: banner?.background_color ?? COLOUR,
});

export function Banners({ current }: { current: AppearanceConfig }) {
  const save = useSave();
  const banners = current.announcement_banners ?? [];
  const [editing, setEditing] = useState<number | null>(null);
  const [deleting, setDeleting] = useState<number | null>(null);
  const replace = (at: number, banner: BannerConfig) =>
    save(({ announcement_banners }) => {
      const existing = announcement_banners ?? [];
      return {
        announcement_banners:
          at < banners.length
            ? existing.map((other, index) => (index === at ? banner : other))
            : [...existing, banner],
      };
    });
  const edited =
    editing === null
      ? null
      : (banners[editing] ?? { enabled: true, message: "", background_color: COLOUR });
  return (
    <Section
      title="Announcement banners"
      description="A line above every page, for maintenance, rules or support."
      padded={banners.length === 0}
      actions={
        <Button icon={<Plus />} onClick={() => setEditing(banners.length)}>
          New
        </Button>
      }
    >
      {banners.length === 0 ? (
        <Empty level={3} icon={Megaphone} title="No announcements">
          All users see a new banner at once, without reloading the page.
        </Empty>
      ) : (
        <ul aria-label="Banners" className="divide-y divide-line">
          {banners.map((banner, index) => (
            <li key={index} className="flex items-center gap-3 px-5 py-2.5">
              <span
                aria-hidden="true"
                className="size-5 shrink-0 rounded-sm border border-line"
                style={{ background: banner.background_color ?? COLOUR }}
              />
              <span
                className={`min-w-0 flex-1 [overflow-wrap:anywhere] ${banner.enabled ? "" : "text-muted"}`}
              >
                {banner.message || "(no text)"}
              </span>
              <Shown
                banner={banner}
                onChange={(enabled) =>
                  save(({ announcement_banners }) => ({
                    announcement_banners: (announcement_banners ?? []).map((other, at) =>
                      at === index ? { ...other, enabled } : other,
                    ),
                  }))
                }
              />
              <IconButton
                size="sm"
                label={`Edit banner ${banner.message ?? ""}`}
                onClick={() => setEditing(index)}
              >
                <Pencil />
              </IconButton>
              <IconButton
                size="sm"
                label={`Delete banner ${banner.message ?? ""}`}
                onClick={() => setDeleting(index)}
              >
                <Trash2 />
              </IconButton>
            </li>
          ))}
        </ul>
      )}
      {edited && editing !== null ? (
        <BannerDialog
          banner={edited}
          load={
            editing < banners.length
              ? async () => (await now()).announcement_banners?.[editing]
              : null
          }
          onClose={() => setEditing(null)}
          onSave={(banner) => replace(editing, banner)}
        />
      ) : null}
      <Confirm
        open={deleting !== null}
        onClose={() => setDeleting(null)}
        title="Delete this banner?"
        confirm="Delete"
        onConfirm={() =>
          save(({ announcement_banners }) => ({
            announcement_banners: (announcement_banners ?? []).filter(
              (_, index) => index !== deleting,
            ),
          }))
        }
      >
        <p>
          “{deleting === null ? "" : banners[deleting]?.message}” disappears for all users. To show
          it again later, turn it off instead.
        </p>
      </Confirm>
    </Section>
  );
}

function Shown({
  banner,
  onChange,
}: {
  banner: BannerConfig;
  onChange: (on: boolean) => Promise<unknown>;
}) {
  const { value, choose } = useChoice(banner.enabled, {
    send: onChange,
    seen: appearance.queryKey,
    failed: "Failed to update the banner",
  });
  return (
    <Switch
      label={`Show the banner ${banner.message}`}
      hideLabel
      checked={value}
      onChange={choose}
    />
  );
}

function BannerDialog({
  banner,
  load,
  onClose,
  onSave,
}: {
  banner: BannerConfig;
  load: (() => Promise<BannerConfig | undefined>) | null;
  onClose: () => void;
  onSave: (banner: BannerConfig) => Promise<unknown>;
}) {
  const id = useId();
  const form = useSettingsForm(load, textOf, textOf(banner), async (values) => {
    await onSave({ ...banner, ...values });
    onClose();
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title="Announcement banner"
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form={id} variant="primary" busy={form.busy}>
            Update
          </Button>
        </>
      }
    >
      <form id={id} className="flex flex-col gap-4" onSubmit={form.submit}>
        <FormProblems form={form} />
        <TextArea
          label="Message"
          required
          rows={3}
          hint="Links in Markdown work: [text](https://…)."
          value={form.values.message}
          onChange={(value) => form.set("message", value)}
        />
        <TextField
          label="Background color"
          type="color"
          className="max-w-20 p-1!"
          value={form.values.background_color}
          onChange={(value) => form.set("background_color", value)}
        />
      </form>
    </Dialog>
  );
}
