// The deployment's name, logo and banners.
import { useQuery } from "@tanstack/react-query";

import { usePermissions } from "../../api/permissions";
import { appearance } from "../../api/queries/session";
import type { AppearanceConfig } from "../../api/types";
import { safeImage } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { FormProblems, useSettingsForm } from "../../ui/forms/conflict";
import { Failure } from "../../ui/Failure";
import { TextField } from "../../ui/forms/Field";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { Banners } from "./Banners";
import { useSave, now } from "./appearance";

export function AppearancePage() {
  useTitle("Appearance Settings");
  const may = usePermissions();
  const current = useQuery(appearance);
  if (may.known && !may.editDeploymentConfig)
    return <PermissionDenied subject="the appearance of this deployment" />;
  return (
    <>
      <PageHead
        title="Appearance"
        description="For all users, on every page and on the sign-in page."
      />
      {current.isPending ? <SkeletonRows rows={3} /> : null}
      {current.isError ? (
        <Failure error={current.error} retry={() => void current.refetch()} />
      ) : null}
      {current.data ? (
        <Stack>
          <ApplicationName current={current.data} />
          <Logo current={current.data} />
          <Banners current={current.data} />
        </Stack>
      ) : null}
    </>
  );
}

const nameOf = ({ application_name }: AppearanceConfig) => ({ application_name });
const logoOf = ({ logo_url }: AppearanceConfig) => ({ logo_url });

function ApplicationName({ current }: { current: AppearanceConfig }) {
  const save = useSave();
  const form = useSettingsForm(now, nameOf, nameOf(current), (values) => save(() => values));
  return (
    <form onSubmit={form.submit}>
      <Section title="Name" description="Shown in the top bar and on the sign-in page.">
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
            <Button type="submit" variant="primary" busy={form.busy} disabled={!form.dirty}>
              Submit
            </Button>
          </div>
        </Stack>
      </Section>
    </form>
  );
}

function Logo({ current }: { current: AppearanceConfig }) {
  const save = useSave();
  const form = useSettingsForm(now, logoOf, logoOf(current), (values) => save(() => values));
  const picture = safeImage(form.values.logo_url);
  return (
    <form onSubmit={form.submit}>
      <Section
        title="Logo"
        description="URL of an image with a transparent background, at most 3:1 wide."
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
                alt="Preview of the logo"
                className="max-h-10 max-w-48"
                referrerPolicy="no-referrer"
              />
            </div>
          ) : null}
          <div className="flex justify-end">
            <Button type="submit" variant="primary" busy={form.busy} disabled={!form.dirty}>
              Submit
            </Button>
          </div>
        </Stack>
      </Section>
    </form>
  );
}
