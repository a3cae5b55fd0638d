// The frame of the sign-in pages: a centered card under the deployment's name.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { pageText } from "../../api/meta";
import { appearance } from "../../api/queries/session";
import { Announcements } from "../../features/appearance/Announcements";
import { safeImage } from "../../ui/Avatar";

export function useApplicationName(): string {
  return useQuery(appearance).data?.application_name || pageText("application-name") || "Coder";
}

export function SignInCard({
  title,
  description,
  children,
  foot,
}: {
  title: ReactNode;
  description?: ReactNode;
  children: ReactNode;
  foot?: ReactNode;
}) {
  const logo = safeImage(useQuery(appearance).data?.logo_url || pageText("logo-url"));
  return (
    <>
      <Announcements />
      <main data-stands-alone className="flex flex-1 flex-col items-center px-4 pt-[12vh] pb-10">
        <img src={logo ?? "/favicon.svg"} alt="" className="application-logo mb-5 h-11 max-w-56" />
        <div className="w-full max-w-sm rounded-xl border border-line bg-surface p-6 shadow-card">
          <h1 className="text-xl font-semibold tracking-tight">{title}</h1>
          {description ? (
            <div className="mt-1 text-base text-muted [overflow-wrap:anywhere]">{description}</div>
          ) : null}
          <div className="mt-5 flex flex-col gap-4">{children}</div>
        </div>
        {foot ? <div className="mt-4 text-center text-sm text-muted">{foot}</div> : null}
      </main>
    </>
  );
}
