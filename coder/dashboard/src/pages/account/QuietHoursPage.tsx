// Quiet hours: the time of day at which templates may stop or restart the user's workspaces.
import { useQuery, useQueryClient } from "@tanstack/react-query";

import { get, put } from "../../api/client";
import { setServerData } from "../../api/optimistic";
import { quietHours } from "../../api/queries/account";
import type { UserQuietHoursScheduleResponse } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Combobox } from "../../ui/forms/Combobox";
import { ConflictNotice, useConflict } from "../../ui/forms/conflict";
import { Failure } from "../../ui/Failure";
import { TextField } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";
import { SkeletonRows } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { PageHead, Stack } from "../../ui/Page";
import { dateTime } from "../../lib/time";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { timezones, writeCron } from "../../lib/cron";

const pick = (current: UserQuietHoursScheduleResponse) => ({
  time: current.time,
  timezone: current.timezone,
});

export function QuietHoursPage() {
  useTitle("Settings");
  const me = useMe();
  const hours = useQuery(quietHours(me.id));
  return (
    <>
      <PageHead
        title="Schedule"
        description="When your workspaces may be stopped for updates and maintenance."
      />
      {hours.isPending ? <SkeletonRows rows={2} /> : null}
      {hours.isError ? <Failure error={hours.error} retry={() => void hours.refetch()} /> : null}
      {hours.data ? <HoursForm user={me.id} current={hours.data} /> : null}
    </>
  );
}

const EVERY_DAY = [0, 1, 2, 3, 4, 5, 6];

function HoursForm({ user, current }: { user: string; current: UserQuietHoursScheduleResponse }) {
  const queries = useQueryClient();
  const path = `/api/v2/users/${user}/quiet-hours`;
  const conflict = useConflict(
    () => get<UserQuietHoursScheduleResponse>(path),
    pick,
    pick(current),
  );
  const save = async (schedule: string, message: string) => {
    const now = await put<UserQuietHoursScheduleResponse>(path, { schedule });
    conflict.saved(pick(now));
    setServerData(queries, quietHours(user).queryKey, now);
    toast.done(message);
    return now;
  };
  const form = useForm(
    pick(current),
    conflict.guard((values: ReturnType<typeof pick>) =>
      save(writeCron({ ...values, days: EVERY_DAY }), "Quiet hours updated."),
    ),
  );
  const { values, set } = form;
  const zones = timezones().map((name) => ({ value: name, text: name }));
  const locked = !current.user_can_set;
  return (
    <form onSubmit={form.submit}>
      <Section
        title="Quiet hours"
        description={
          "Templates that require regular restarts restart your workspaces after this time of day, " +
          "when you are unlikely to work. Other templates are not affected."
        }
      >
        <Stack>
          <ConflictNotice conflict={conflict} form={form} />
          {form.error && !conflict.theirs ? <Failure error={form.error} /> : null}
          {locked ? (
            <Notice kind="info" title="Your administrator sets the quiet hours for everyone." />
          ) : null}
          <div className="grid grid-cols-2 gap-4 max-sm:grid-cols-1">
            <TextField
              label="Start time"
              type="time"
              required
              disabled={locked}
              value={values.time}
              onChange={(value) => set("time", value)}
            />
            <Combobox
              label="Timezone"
              disabled={locked}
              value={values.timezone}
              onChange={(value) => set("timezone", value)}
              options={zones}
            />
          </div>
          <p className="text-sm text-muted">
            Next quiet hours:{" "}
            <strong className="font-medium text-text">{dateTime(current.next)}</strong>
            {current.user_set ? "" : " (the deployment’s default)"}.
          </p>
          <div className="flex flex-wrap justify-end gap-2">
            {current.user_set && !locked ? (
              <Button
                onClick={() =>
                  void save("", "Quiet hours reset to the deployment’s default.").then(
                    (now) => form.reset(pick(now)),
                    (error: unknown) => toast.failed("Failed to reset the quiet hours", error),
                  )
                }
              >
                Reset to default
              </Button>
            ) : null}
            <Button
              type="submit"
              variant="primary"
              busy={form.busy}
              disabled={locked || (!form.dirty && current.user_set)}
            >
              Update schedule
            </Button>
          </div>
        </Stack>
      </Section>
    </form>
  );
}
