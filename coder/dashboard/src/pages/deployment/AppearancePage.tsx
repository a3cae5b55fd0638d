// What the deployment is called and what stands above every page.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Megaphone, Pencil, Plus, Trash2 } from "lucide-react";
import { useId, useState } from "react";

import { get, put } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import { appearance } from "../../api/queries/session";
import { inTurn } from "../../api/turns";
import type { AppearanceConfig, BannerConfig, UpdateAppearanceConfig } from "../../api/types";
import { safeImage } from "../../ui/Avatar";
import { Button, IconButton } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { useChoice } from "../../ui/forms/choice";
import { FormProblems, useSettingsForm } from "../../ui/forms/conflict";
import { Confirm } from "../../ui/Confirm";
import { Dialog } from "../../ui/Dialog";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { Switch, TextArea, TextField } from "../../ui/forms/Field";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { Refused } from "../../ui/Refused";

const COLOUR = "#004852";
const APPEARANCE = "/api/v2/appearance";

export function AppearancePage() {
  useTitle("Appearance Settings");
  const may = usePermissions();
  const look = useQuery(appearance);
  if (may.known && !may.editDeploymentConfig)
    return <Refused what="the appearance of this deployment" />;
  return (
    <>
      <PageHead
        title="Appearance"
        description="For everybody, on every page and on the page where people sign in."
      />
      {look.isPending ? <SkeletonRows rows={3} /> : null}
      {look.isError ? <Failure error={look.error} retry={() => void look.refetch()} /> : null}
      {look.data ? (
        <Stack>
          <ApplicationName look={look.data} />
          <Logo look={look.data} />
          <Banners look={look.data} />
        </Stack>
      ) : null}
    </>
  );
}

const now = () => get<AppearanceConfig>(APPEARANCE);

/** The server takes all of it at once: what is not changed here is what it has at that moment, not what this page once
 * loaded, nor what it had before a change of ours that is still on its way. */
function useSave() {
  const queries = useQueryClient();
  return (change: (found: AppearanceConfig) => Partial<UpdateAppearanceConfig>) =>
    inTurn(`${APPEARANCE}, read and written`, async () => {
      const found = await now();
      const { application_name, logo_url, service_banner, announcement_banners } = found;
      await put(APPEARANCE, {
        application_name,
        logo_url,
        service_banner,
        announcement_banners: announcement_banners ?? [],
        ...change(found),
      });
      toast.done("Successfully updated appearance settings!");
      await queries.invalidateQueries({ queryKey: appearance.queryKey });
    });
}

const nameOf = ({ application_name }: AppearanceConfig) => ({ application_name });
const logoOf = ({ logo_url }: AppearanceConfig) => ({ logo_url });
const textOf = (banner: BannerConfig | undefined) => ({
  message: banner?.message ?? "",
  background_color: banner?.background_color ?? COLOUR,
});

function ApplicationName({ look }: { look: AppearanceConfig }) {
  const save = useSave();
  const form = useSettingsForm(now, nameOf, nameOf(look), (values) => save(() => values));
  return (
    <form onSubmit={form.submit}>
      <Section title="Application name" description="Shown in the top bar and on the sign-in page.">
        <Stack>
          <FormProblems form={form} />
          <TextField
            label="Application name"
            hideLabel
            placeholder="Coder"
            value={form.values.application_name}
            problem={form.problem("application_name")}
            onChange={(value) => form.set("application_name", value)}
          />
          <div className="flex justify-end">
            <Button type="submit" look="primary" busy={form.busy} disabled={!form.dirty}>
              Submit
            </Button>
          </div>
        </Stack>
      </Section>
    </form>
  );
}

function Logo({ look }: { look: AppearanceConfig }) {
  const save = useSave();
  const form = useSettingsForm(now, logoOf, logoOf(look), (values) => save(() => values));
  const picture = safeImage(form.values.logo_url);
  return (
    <form onSubmit={form.submit}>
      <Section
        title="Logo URL"
        description="The address of a picture with a transparent background, 3:1 or narrower."
      >
        <Stack>
          <FormProblems form={form} />
          <TextField
            label="Logo URL"
            hideLabel
            placeholder="https://example.com/logo.svg"
            value={form.values.logo_url}
            problem={form.problem("logo_url")}
            onChange={(value) => form.set("logo_url", value)}
          />
          {picture ? (
            <div className="flex h-16 items-center rounded-lg border border-line bg-inset px-4">
              <img
                src={picture}
                alt="How the logo looks"
                className="max-h-10 max-w-48"
                referrerPolicy="no-referrer"
              />
            </div>
          ) : null}
          <div className="flex justify-end">
            <Button type="submit" look="primary" busy={form.busy} disabled={!form.dirty}>
              Submit
            </Button>
          </div>
        </Stack>
      </Section>
    </form>
  );
}

function Banners({ look }: { look: AppearanceConfig }) {
  const save = useSave();
  const banners = look.announcement_banners ?? [];
  const [editing, setEditing] = useState<number | null>(null);
  const [deleting, setDeleting] = useState<number | null>(null);
  const replace = (at: number, banner: BannerConfig) =>
    save(({ announcement_banners }) => {
      const there = announcement_banners ?? [];
      return {
        announcement_banners:
          at < banners.length
            ? there.map((one, index) => (index === at ? banner : one))
            : [...there, banner],
      };
    });
  const edited =
    editing === null
      ? null
      : (banners[editing] ?? { enabled: true, message: "", background_color: COLOUR });
  return (
    <Section
      title="Announcement banners"
      description="A line above every page: maintenance, rules, where to get help."
      padded={banners.length === 0}
      actions={
        <Button icon={<Plus />} onClick={() => setEditing(banners.length)}>
          New
        </Button>
      }
    >
      {banners.length === 0 ? (
        <Empty level={3} icon={Megaphone} title="No announcements">
          A banner is seen by everybody at once, without a reload of their pages.
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
                    announcement_banners: (announcement_banners ?? []).map((one, at) =>
                      at === index ? { ...one, enabled } : one,
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
          “{deleting === null ? "" : banners[deleting]?.message}” disappears for everybody. To bring
          it back later, turn it off instead.
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
    failed: "The banner could not be changed",
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
          <Button type="submit" form={id} look="primary" busy={form.busy}>
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
