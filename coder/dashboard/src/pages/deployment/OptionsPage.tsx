// The server's options: description, value and source. They are set where the server is started, so
// each row names its flag and variable.
import { useQuery } from "@tanstack/react-query";
import { Check, Minus, SlidersHorizontal } from "lucide-react";

import { usePermissions } from "../../api/permissions";
import { deploymentConfig, type DeploymentOption } from "../../api/queries/deployment";
import { Tag } from "../../ui/Badge";
import { Section } from "../../ui/Card";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { cx } from "../../ui/cx";
import { FilterBar, useListAddress } from "../../ui/lists/FilterBar";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import {
  grouped,
  isActive,
  onPage,
  shownValue,
  sourceOf,
  SOURCES,
  type OptionsPage,
} from "./options";
import { PermissionDenied } from "../../ui/PermissionDenied";

const PAGES: Readonly<
  Record<OptionsPage, { title: string; crumbs: readonly string[]; text: string }>
> = {
  userauth: {
    title: "User authentication",
    crumbs: ["User Authentication Settings"],
    text: "Sign-in methods: passwords, OpenID Connect, GitHub.",
  },
  network: { title: "Network", crumbs: ["Network Settings"], text: "Addresses, TLS, relays." },
  security: {
    title: "Security",
    crumbs: ["Security Settings"],
    text: "Sessions, cookies, restrictions for owners.",
  },
  observability: {
    title: "Observability",
    crumbs: ["Observability Settings"],
    text: "Logs, metrics, traces, health.",
  },
  all: {
    title: "All settings",
    crumbs: ["All Settings"],
    text: "All options of this server.",
  },
};

function Options({ page }: { page: OptionsPage }) {
  const { title, crumbs, text } = PAGES[page];
  useTitle(...crumbs);
  const may = usePermissions();
  const { filter, show } = useListAddress();
  const config = useQuery({ ...deploymentConfig, enabled: may.viewDeploymentConfig });
  if (may.known && !may.viewDeploymentConfig)
    return <PermissionDenied subject="the deployment's settings" />;
  const needle = filter.trim().toLowerCase();
  const matches = (config.data?.options ?? []).filter(
    (option) =>
      onPage(option, page) &&
      // Each page shows all options of its groups, as the original does; the list of all is long enough.
      !(option.hidden && page === "all") &&
      `${option.name} ${option.flag ?? ""} ${option.env ?? ""} ${option.description ?? ""}`
        .toLowerCase()
        .includes(needle),
  );
  return (
    <>
      <PageHead
        title={title}
        description={`${text} Set on the command line, in the environment or in the configuration file; read-only here.`}
      />
      <FilterBar
        label="Search settings"
        placeholder="by name, flag or variable"
        filter={filter}
        onChange={(next) => show(next)}
      />
      {config.isPending ? <SkeletonRows rows={6} /> : null}
      {config.isError ? <Failure error={config.error} retry={() => void config.refetch()} /> : null}
      {config.data && matches.length === 0 ? (
        <Empty icon={SlidersHorizontal} title="No results">
          Try another search.
        </Empty>
      ) : null}
      <Stack>
        {grouped(matches).map((group) => (
          <Section key={group.group} title={group.group} padded={false}>
            <OptionTable label={group.group} options={group.options} />
          </Section>
        ))}
      </Stack>
    </>
  );
}

export const UserAuthPage = () => <Options page="userauth" />;
export const NetworkPage = () => <Options page="network" />;
export const SecurityPage = () => <Options page="security" />;
export const ObservabilityPage = () => <Options page="observability" />;
export const AllSettingsPage = () => <Options page="all" />;

/** Classes name each option by its flag and each value by its kind: scripts rely on them. */
export function OptionTable({
  label,
  options,
}: {
  label: string;
  options: readonly DeploymentOption[];
}) {
  return (
    <div className="options-table">
      <table aria-label={label} className="block w-full sm:table sm:table-fixed">
        <thead className="sr-only">
          <tr>
            <th scope="col">Option</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        <tbody className="block divide-y divide-line sm:table-row-group">
          {options
            .map((option) => ({ option, source: sourceOf(option) }))
            .map(({ option, source }) => (
              <tr
                key={option.name}
                className={`block align-top sm:table-row option-${option.flag ?? ""}`}
              >
                <td className="block px-5 py-3 max-sm:pb-0 sm:table-cell sm:w-3/5">
                  <p className="option-name font-medium [overflow-wrap:anywhere]">{option.name}</p>
                  {option.description ? (
                    <p className="text-sm text-muted [overflow-wrap:anywhere]">
                      {option.description}
                    </p>
                  ) : null}
                  <p className="mt-1 flex flex-wrap gap-x-3 font-mono text-xs text-faint [overflow-wrap:anywhere]">
                    {option.flag ? <span>--{option.flag}</span> : null}
                    {option.env ? <span>{option.env}</span> : null}
                  </p>
                </td>
                <td className="option-value block px-5 py-3 max-sm:pt-1.5 sm:table-cell">
                  <OptionValue option={option} />
                  {isActive(option) === null ? null : (
                    <span className="ml-1.5 text-sm text-muted">
                      {isActive(option) ? "(active)" : "(not active)"}
                    </span>
                  )}
                  {source ? (
                    <p className="mt-1">
                      <Tag tone={source === "default" ? "idle" : "accent"}>
                        {SOURCES[source] ?? source}
                      </Tag>
                    </p>
                  ) : null}
                </td>
              </tr>
            ))}
        </tbody>
      </table>
    </div>
  );
}

function OptionValue({ option }: { option: DeploymentOption }) {
  const value = shownValue(option);
  switch (value.kind) {
    case "secret":
      return <span className="text-muted">Hidden: this is a secret</span>;
    case "unset":
      return <span className="option-value-empty text-muted">Not set</span>;
    case "boolean":
      return value.on ? (
        <span className="option-enabled inline-flex items-center gap-1.5 font-medium text-good">
          <Check className="size-4" aria-hidden="true" />
          Enabled
        </span>
      ) : (
        <span className="option-disabled inline-flex items-center gap-1.5 text-muted">
          <Minus className="size-4" aria-hidden="true" />
          Disabled
        </span>
      );
    case "flags":
      return (
        <ul className="option-array flex flex-col gap-0.5">
          {value.items.map(([name, on]) => (
            <li
              key={name}
              className={cx(
                `option-array-item-${name}`,
                on ? "option-enabled font-medium" : "option-disabled text-muted",
                "flex items-center gap-1.5 text-sm [overflow-wrap:anywhere]",
              )}
            >
              {on ? (
                <Check className="size-4 text-good" aria-label="Enabled" />
              ) : (
                <Minus className="size-4" aria-label="Disabled" />
              )}
              {name}
            </li>
          ))}
        </ul>
      );
    case "list":
      return (
        <ul className="option-array flex flex-col gap-0.5">
          {value.items.map((item) => (
            <li
              key={item}
              className={cx(
                `option-array-item-${item.split(" → ")[0] ?? item} option-enabled`,
                "font-mono text-sm [overflow-wrap:anywhere]",
              )}
            >
              {item}
            </li>
          ))}
        </ul>
      );
    case "text":
      return (
        <code
          className={cx(
            typeof option.value === "number" && value.text === String(option.value)
              ? "option-value-number"
              : "option-value-string",
            "text-sm [overflow-wrap:anywhere]",
          )}
        >
          {value.text}
        </code>
      );
  }
}
