// A new token: name, expiry, permissions. Its value is shown once.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { post } from "../../api/client";
import { tokenConfig, tokenScopes } from "../../api/queries/account";
import type { CreateTokenRequest, GenerateAPIKeyResponse, TokenConfig } from "../../api/types";
import { Button, ButtonLink } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { CodeBox } from "../../ui/text/CodeBox";
import { Failure } from "../../ui/Failure";
import { Checkbox } from "../../ui/forms/Toggle";
import { RadioCards } from "../../ui/forms/RadioCards";
import { SelectField, TextField } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";
import { SkeletonRows } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { PageHead, Stack } from "../../ui/Page";
import { toast } from "../../ui/toast";
import { useTitle } from "../../ui/title";
import { daysToNs, daysUntil, lifetimes, SCOPE_TEXTS } from "./token-words";
import { counted } from "../../lib/words";

const SHOWN = 40;

export function NewTokenPage() {
  useTitle("Create Token");
  const config = useQuery(tokenConfig);
  const [created, setCreated] = useState<{ name: string; value: string } | null>(null);
  return (
    <>
      <PageHead
        title="Create token"
        crumbs={[["Tokens", "/settings/tokens"], ["New"]]}
        description="Create one per program, so that you can revoke each separately."
      />
      {config.isPending ? <SkeletonRows rows={3} /> : null}
      {config.isError ? <Failure error={config.error} retry={() => void config.refetch()} /> : null}
      {config.data && !created ? <TokenForm config={config.data} onMade={setCreated} /> : null}
      {created ? <CreatedToken {...created} /> : null}
    </>
  );
}

function CreatedToken({ name, value }: { name: string; value: string }) {
  const address = window.location.origin;
  return (
    <Section title={`Token ${name} created`}>
      <Stack>
        <Notice kind="warning" title="Copy the token now. It is not shown again.">
          Anyone with this token can act as you. Keep it in a password manager or in your CI’s
          secrets.
        </Notice>
        <CodeBox label="Your new token" command={value} secret testId="new-token" />
        <p className="text-sm text-muted">Use with the CLI:</p>
        <CodeBox
          label="Use with the CLI"
          command={`CODER_URL=${address} CODER_SESSION_TOKEN=… coder list`}
        />
        <div className="flex justify-end">
          <ButtonLink variant="primary" to="/settings/tokens">
            I have saved it
          </ButtonLink>
        </div>
      </Stack>
    </Section>
  );
}

function TokenForm({
  config,
  onMade,
}: {
  config: TokenConfig;
  onMade: (created: { name: string; value: string }) => void;
}) {
  const queries = useQueryClient();
  const choices = lifetimes(config.max_token_lifetime);
  const start = {
    token_name: "",
    days: String(choices.includes(30) ? 30 : choices[0]),
    date: "",
    limited: false,
    scopes: [] as string[],
  };
  const form = useForm(
    start,
    async (values) => {
      const days = values.days === "date" ? daysUntil(values.date) : Number(values.days);
      const request: CreateTokenRequest = {
        token_name: values.token_name,
        lifetime: daysToNs(days),
        ...(values.limited ? { scopes: values.scopes } : {}),
      };
      const { key } = await post<GenerateAPIKeyResponse>("/api/v2/users/me/keys/tokens", request);
      await queries.invalidateQueries({ queryKey: ["users", "me", "keys"] });
      toast.done(`Token "${values.token_name}" created successfully.`);
      onMade({ name: values.token_name, value: key });
    },
    (values) => ({
      ...(values.token_name.trim() === ""
        ? { token_name: "Enter a name that says what the token is for." }
        : {}),
      ...(values.days === "date" && !(daysUntil(values.date) > 0)
        ? { date: "Choose a date in the future." }
        : {}),
      ...(values.limited && values.scopes.length === 0
        ? { scopes: "Choose at least one permission." }
        : {}),
    }),
  );
  const { values, set, problem } = form;
  const today = new Date().toISOString().slice(0, 10);
  return (
    <form onSubmit={form.submit}>
      <Stack>
        {form.error ? <Failure error={form.error} /> : null}
        <Section title="Details">
          <Stack>
            <TextField
              label="Name"
              autoFocus
              required
              maxLength={64}
              placeholder="ci"
              value={values.token_name}
              problem={problem("token_name")}
              onChange={(value) => set("token_name", value)}
              hint="The program that uses the token. Lists show this name."
            />
            <div className="grid grid-cols-2 gap-4 max-sm:grid-cols-1">
              <SelectField
                label="Lifetime"
                value={values.days}
                onChange={(value) => set("days", value)}
                options={[
                  ...choices.map((days) => [String(days), counted(days, "day")] as const),
                  ["date", "Until a date"],
                ]}
              />
              {values.days === "date" ? (
                <TextField
                  label="Expires on"
                  type="date"
                  required
                  min={today}
                  value={values.date}
                  problem={problem("date")}
                  onChange={(value) => set("date", value)}
                />
              ) : null}
            </div>
          </Stack>
        </Section>
        <Section title="Permissions">
          <Stack>
            <RadioCards
              label="Scope"
              value={values.limited ? "some" : "all"}
              onChange={(value) => set("limited", value === "some")}
              options={[
                {
                  value: "all",
                  text: "All of your permissions",
                  hint: "The token has all of your permissions. Protect it like your password.",
                },
                {
                  value: "some",
                  text: "Selected permissions",
                  hint: "All other requests are rejected.",
                },
              ]}
            />
            {values.limited ? (
              <Scopes
                chosen={values.scopes}
                onChange={(scopes) => set("scopes", scopes)}
                problem={problem("scopes")}
              />
            ) : null}
          </Stack>
        </Section>
        <div className="flex justify-end gap-2">
          <ButtonLink to="/settings/tokens">Cancel</ButtonLink>
          <Button type="submit" variant="primary" busy={form.busy}>
            Create token
          </Button>
        </div>
      </Stack>
    </form>
  );
}

function Scopes({
  chosen,
  onChange,
  problem,
}: {
  chosen: readonly string[];
  onChange: (scopes: string[]) => void;
  problem: string | undefined;
}) {
  const all = useQuery(tokenScopes);
  const [text, setText] = useState("");
  if (all.isPending) return <SkeletonRows rows={3} />;
  if (all.isLoadingError) return <Failure error={all.error} retry={() => void all.refetch()} />;
  const names: readonly string[] = all.data.external;
  const toggle = (name: string) =>
    onChange(chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name]);
  const fine = names.filter(
    (name) =>
      !name.startsWith("coder:") &&
      name.includes(":") &&
      (text === "" ? chosen.includes(name) : name.includes(text.trim().toLowerCase())),
  );
  return (
    <>
      {problem ? (
        <p role="alert" className="text-sm text-bad">
          {problem}
        </p>
      ) : null}
      <fieldset className="grid grid-cols-2 gap-3 max-sm:grid-cols-1">
        <legend className="sr-only">Permissions</legend>
        {Object.entries(SCOPE_TEXTS)
          .filter(([name]) => names.includes(name))
          .map(([name, [words, hint]]) => (
            <Checkbox
              key={name}
              label={words}
              hint={hint}
              checked={chosen.includes(name)}
              onChange={() => toggle(name)}
            />
          ))}
      </fieldset>
      <TextField
        label="Fine-grained permissions"
        type="search"
        placeholder="workspace:read, template:…"
        value={text}
        onChange={setText}
        hint="Searches all scopes of the API."
      />
      {fine.length > 0 ? (
        <fieldset className="grid grid-cols-2 gap-2 max-sm:grid-cols-1">
          <legend className="sr-only">Fine-grained permissions</legend>
          {fine.slice(0, SHOWN).map((name) => (
            <Checkbox
              key={name}
              label={<code className="text-sm">{name}</code>}
              checked={chosen.includes(name)}
              onChange={() => toggle(name)}
            />
          ))}
        </fieldset>
      ) : null}
      {fine.length > SHOWN ? (
        <p className="text-sm text-muted">{fine.length - SHOWN} more: type to narrow the list.</p>
      ) : null}
    </>
  );
}
