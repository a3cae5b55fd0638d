// Keyboard access to pages, workspaces and templates. Opens with Ctrl/Cmd+K.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Command } from "cmdk";
import { useCallback, useDeferredValue, useRef, useState } from "react";
import { useNavigate } from "react-router";

import { seg } from "../../api/client";
import { useMayCreateWorkspace, usePermissions } from "../../api/permissions";
import { organizations } from "../../api/queries/session";
import { templates } from "../../api/queries/templates";
import { workspaces } from "../../api/queries/workspaces";
import type { Organization, Template } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { templatePath } from "../../features/template/paths";
import { cx } from "../../ui/cx";
import { RightsOfList } from "../../pages/workspaces/rights";
import { ACTIONS, FORMS, MAIN } from "./nav";
import { PaletteActions } from "./PaletteActions";
import { PaletteThemes } from "./PaletteThemes";
import { commandOf } from "./palette-commands";
import { INPUT, LABEL, OVERLAY, PANEL, PLACEHOLDER } from "./palette-look";
import { signOut } from "./sign-out";
import type { NavItem } from "../../features/navigation/nav-item";
import { ACCOUNT } from "../../pages/account/nav";
import { ADMIN } from "./nav-admin";
import { DEPLOYMENT } from "../../pages/deployment/nav";

const ITEM =
  "flex cursor-pointer items-center gap-2.5 rounded-md px-2.5 py-2 data-[selected=true]:marked";
// Hide a heading that has no items.
const GROUP = cx(
  "not-has-[[cmdk-item]]:hidden [&_[cmdk-group-heading]]:px-2.5",
  "[&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1",
  "[&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:font-medium",
  "[&_[cmdk-group-heading]]:text-faint",
);

/** Search words for an organization's pages. */
function organizationPages(homes: readonly Organization[]): NavItem[] {
  return homes.flatMap(({ name, display_name }) => {
    const suffix = homes.length > 1 ? ` of ${display_name || name}` : "";
    const home = `/organizations/${seg(name)}`;
    return [
      {
        to: home,
        text: `Members${suffix}`,
        words: "people roles",
        allowed: (may) => may.viewAnyMembers,
      },
      {
        to: `${home}/provisioners`,
        text: `Provisioners${suffix}`,
        words: "daemons",
        allowed: (may) => may.viewAnyProvisionerJobs,
      },
      {
        to: `${home}/provisioner-jobs`,
        text: `Provisioner jobs${suffix}`,
        words: "queue waits pending builds",
        allowed: (may) => may.viewAnyProvisionerJobs,
      },
    ] satisfies NavItem[];
  });
}

/**
 * 1 if each typed word starts a word of the item, less if a word is only contained, 0 if one is
 * missing. The library's default accepts scattered letters in order, so that "invite" matched
 * everything.
 */
export function rank(item: string, typed: string): number {
  const text = item.toLowerCase();
  return Math.min(
    1,
    ...typed
      .toLowerCase()
      .split(/\s+/)
      .filter(Boolean)
      .map((word) => {
        const at = text.indexOf(word);
        if (at < 0) return 0;
        return text.split(/[^\p{L}\p{N}]+/u).some((candidate) => candidate.startsWith(word))
          ? 1
          : 0.5;
      }),
  );
}

export function CommandPalette({
  typed: first,
  onLeave,
  onClose,
  onHelp,
}: {
  /** Text of the input that stood here before this code was there; undefined without one. */
  typed?: string;
  /** Called before the palette closes for another page. */
  onLeave?: () => void;
  onClose: () => void;
  /** Opens the list of shortcuts. */
  onHelp?: () => void;
}) {
  const [text, setText] = useState(first ?? "");
  const list = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const may = usePermissions();
  const typed = useDeferredValue(text.trim());
  const command = commandOf(typed);
  const needle = command ? command.name : typed;
  const workspaceList =
    useQuery({
      ...workspaces(needle === "" ? "owner:me" : `name:"${needle.replaceAll('"', "")}"`, 1),
      refetchInterval: false,
      placeholderData: keepPreviousData,
    }).data?.workspaces ?? [];
  const templateList = useQuery(templates()).data ?? [];
  const homes = useQuery(organizations).data ?? [];
  // At once, with the cursor after the text: the dialog's own focus comes later and selects the text. Its trap has to
  // learn of this focus, which was there before it.
  const begin = useCallback((input: HTMLInputElement | null) => {
    input?.focus();
    input?.setSelectionRange(input.value.length, input.value.length);
    window.setTimeout(() => input?.dispatchEvent(new FocusEvent("focusin", { bubbles: true })));
  }, []);
  const go = (to: string) => {
    onLeave?.();
    onClose();
    void navigate(to);
  };
  const pages = (items: readonly NavItem[]) =>
    items
      .filter((item) => item.allowed?.(may) ?? true)
      .map((item) => (
        <Command.Item
          key={item.to}
          className={ITEM}
          value={`${item.text} ${item.words ?? ""} ${item.to}`}
          onSelect={() => go(item.to)}
        >
          {item.text}
        </Command.Item>
      ));
  return (
    <Command.Dialog
      open
      filter={rank}
      onOpenChange={(open) => {
        if (!open) onClose();
      }}
      label={LABEL}
      overlayClassName={OVERLAY}
      contentClassName={PANEL}
    >
      <Command.Input
        {...(first === undefined ? {} : { ref: begin })}
        value={text}
        onValueChange={(next) => {
          setText(next);
          if (list.current) list.current.scrollTop = 0;
        }}
        placeholder={PLACEHOLDER}
        className={INPUT}
      />
      <Command.List ref={list} className="max-h-[50vh] overflow-y-auto p-1.5">
        <Command.Empty className="px-3 py-6 text-center text-muted">
          {command ? "No workspace matches this command now" : "No results"}
        </Command.Empty>
        {command ? (
          <Command.Group heading="Commands" className={GROUP}>
            <RightsOfList list={workspaceList}>
              <PaletteActions
                command={command}
                workspaces={workspaceList}
                className={ITEM}
                onClose={onClose}
              />
            </RightsOfList>
          </Command.Group>
        ) : null}
        <Command.Group heading="Workspaces" className={GROUP}>
          {workspaceList.slice(0, 8).map((workspace) => (
            <Command.Item
              key={workspace.id}
              className={ITEM}
              value={`workspace ${workspace.owner_name}/${workspace.name}`}
              onSelect={() => go(`/@${workspace.owner_name}/${workspace.name}`)}
            >
              <Avatar
                name={workspace.template_name}
                src={workspace.template_icon}
                size="sm"
                square
              />
              <span className="truncate">
                {workspace.owner_name}/{workspace.name}
              </span>
            </Command.Item>
          ))}
        </Command.Group>
        <Command.Group heading="New workspace from" className={GROUP}>
          {templateList
            .filter((template) => !template.deprecated)
            .map((template) => (
              <NewFrom key={template.id} template={template} go={go} />
            ))}
        </Command.Group>
        {/* A command acts on workspaces: a page that happens to match must not be chosen by Enter. */}
        {command ? null : (
          <>
            <Command.Group heading="Appearance" className={GROUP}>
              {typed === "" ? null : <PaletteThemes className={ITEM} onClose={onClose} />}
            </Command.Group>
            <Command.Group heading="Pages" className={GROUP}>
              {pages(MAIN)}
              {pages(ACTIONS)}
              {pages(ACCOUNT)}
            </Command.Group>
            <Command.Group heading="Administration" className={GROUP}>
              {pages(ADMIN)}
              {pages(DEPLOYMENT.flatMap((group) => group.items))}
              {pages(organizationPages(homes))}
            </Command.Group>
            <Command.Group heading="Create" className={GROUP}>
              {pages(FORMS)}
            </Command.Group>
            <Command.Group heading="Help" className={GROUP}>
              {onHelp ? (
                <Command.Item
                  className={ITEM}
                  value="keyboard shortcuts help keys commands"
                  onSelect={() => {
                    onClose();
                    onHelp();
                  }}
                >
                  Keyboard shortcuts
                </Command.Item>
              ) : null}
              <Command.Item
                className={ITEM}
                value="sign out log out logout"
                onSelect={() => {
                  onClose();
                  void signOut();
                }}
              >
                Sign out
              </Command.Item>
            </Command.Group>
          </>
        )}
      </Command.List>
    </Command.Dialog>
  );
}

/**
 * Only in organizations where the user may create workspaces: the palette is no place for
 * permission errors.
 */
function NewFrom({ template, go }: { template: Template; go: (to: string) => void }) {
  if (!useMayCreateWorkspace(template.organization_id)) return null;
  return (
    <Command.Item
      className={ITEM}
      value={`new workspace create from ${template.name} ${template.display_name}`}
      onSelect={() => go(`${templatePath(template)}/workspace`)}
    >
      <Avatar name={template.name} src={template.icon} size="sm" square />
      <span className="truncate">{template.display_name || template.name}</span>
    </Command.Item>
  );
}
