// The frame of a template's settings; it provides the template to its pages.
import { Outlet, useOutletContext } from "react-router";

import { useTemplateRights } from "../../../api/permissions";
import type { Template } from "../../../api/types";
import { SidePage } from "../../../features/navigation/SidePage";
import { Avatar } from "../../../ui/Avatar";
import { Notice } from "../../../ui/Notice";
import { TextLink } from "../../../ui/Page";
import { useTemplateHome } from "../../../features/template/paths";
import { useTemplate } from "../../../features/template/useTemplate";

export function TemplateSettingsLayout() {
  const { template, view } = useTemplate();
  return template ? <Loaded template={template} /> : view;
}

function Loaded({ template }: { template: Template }) {
  const may = useTemplateRights(template);
  const home = useTemplateHome(template);
  return (
    <SidePage
      label="Template settings"
      head={
        <div className="flex items-center gap-2.5">
          <Avatar name={template.name} src={template.icon} square />
          <TextLink to={home} className="truncate text-text">
            {template.display_name || template.name}
          </TextLink>
        </div>
      }
      groups={[
        {
          items: [
            { to: `${home}/settings`, text: "General" },
            { to: `${home}/settings/permissions`, text: "Permissions" },
            { to: `${home}/settings/variables`, text: "Variables" },
            { to: `${home}/settings/schedule`, text: "Schedule" },
          ],
        },
      ]}
    >
      {may.update === false ? (
        <Notice kind="info" title="You can use this template but not change it">
          Contact an administrator of the template.
        </Notice>
      ) : (
        <Outlet context={template} />
      )}
    </SidePage>
  );
}

export const useSettingsTemplate = () => useOutletContext<Template>();
