// Top bar, banners, content, footer: the frame of every page except the sign-in pages. Without a
// user it offers to sign in.
import { useQuery } from "@tanstack/react-query";
import { ChevronDown, Menu as MenuIcon, Search, WifiOff } from "lucide-react";
import { lazy, Suspense, useEffect, useState, type ReactNode } from "react";
import { Link, NavLink, useLocation } from "react-router";

import { useLongLost } from "../../api/connection";
import { usePermissions } from "../../api/permissions";
import { appearance, buildInfo } from "../../api/queries/session";
import type { User } from "../../api/types";
import { safeImage } from "../../ui/Avatar";
import { Button, ButtonLink, IconButton } from "../../ui/Button";
import { loadMenus, Menu, MenuItem, MenuSeparator } from "../../ui/Menu";
import { loadPopovers } from "../../ui/Popover";
import { SkipLink } from "../../ui/SkipLink";
import { Announcements } from "../../features/appearance/Announcements";
import { loadFonts } from "../../features/appearance/fonts";
import { cx } from "../../ui/cx";
import { focusOrigin } from "../../ui/focus/focus-return";
import { FrameExtras } from "./FrameExtras";
import { LatePalette } from "./LatePalette";
import { MAIN } from "./nav";
import { ADMIN, isAdminPage } from "./nav-admin";
import { useFocusOnNavigation } from "./navigation-focus";
import { useComplete, useQuiet } from "./useQuiet";
import { useShortcuts } from "./shortcuts";
import { UserMenu } from "./UserMenu";

const ShortcutSheet = lazy(async () => ({
  default: (await import("./ShortcutSheet")).ShortcutSheet,
}));
const DeploymentBar = lazy(async () => ({
  default: (await import("./DeploymentBar")).DeploymentBar,
}));

/** Pages whose parts have a fixed size: shown before they are complete. */
const STEADY: ReadonlySet<string> = new Set(["/workspaces"]);
/** The palette's keys, as they are labelled on this keyboard. */
const SHORTCUT = /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘ K" : "Ctrl K";
/** Invisible, but focusable and read aloud. */
const HIDDEN = "opacity-0";

export function Frame({ user, children }: { user: User | null; children: ReactNode }) {
  const info = useQuery(buildInfo);
  const content = useFocusOnNavigation();
  const [palette, setPalette] = useState<{ origin: HTMLElement | null } | null>(null);
  const openPalette = () => setPalette({ origin: focusOrigin() });
  const lost = useLongLost();
  const quiet = useQuiet();
  const complete = useComplete();
  const [first] = useState(useLocation().pathname);
  const shown = complete || STEADY.has(first);
  const bar = usePermissions(user !== null).viewDeploymentStats;
  useEffect(() => {
    if (!quiet) return;
    void loadFonts();
    void loadMenus();
    void loadPopovers();
  }, [quiet]);
  const [help, setHelp] = useState(false);
  useShortcuts(user !== null, openPalette, () => setHelp(true));
  return (
    <>
      <SkipLink to="content">Skip to content</SkipLink>
      <Announcements />
      <header className="sticky top-0 z-30 border-b border-line bg-surface">
        <div className="mx-auto flex h-13 w-full max-w-(--page) items-center gap-2 px-4 sm:px-6">
          <Brand />
          {user ? <MainNav /> : null}
          <div className="ml-auto flex items-center gap-1.5">
            {user ? (
              <>
                <Button
                  variant="quiet"
                  className="max-lg:hidden"
                  icon={<Search />}
                  onClick={openPalette}
                  aria-keyshortcuts="Control+K Meta+K"
                >
                  Search
                  <kbd
                    aria-hidden="true"
                    className="rounded-sm border border-line px-1 text-xs text-faint"
                  >
                    {SHORTCUT}
                  </kbd>
                </Button>
                <IconButton className="lg:hidden" label="Search" onClick={openPalette}>
                  <Search />
                </IconButton>
                <FrameExtras load={quiet} />
                <UserMenu user={user} onHelp={() => setHelp(true)} />
              </>
            ) : (
              <ButtonLink to="/login" variant="primary">
                Sign in
              </ButtonLink>
            )}
          </div>
        </div>
      </header>
      {lost ? (
        <div
          role="status"
          className={cx(
            "fixed inset-x-0 top-13 z-30 flex items-center justify-center gap-2 border-b",
            "border-warn/40 bg-warn-soft px-4 py-1.5 text-sm font-medium",
          )}
        >
          <WifiOff className="size-4 text-warn" aria-hidden="true" />
          Connection to the server lost.{" "}
          <span className="font-normal text-muted">
            Reconnecting… The page shows the last known state.
          </span>
        </div>
      ) : null}
      <main
        id="content"
        ref={content}
        tabIndex={-1}
        className={cx(
          "mx-auto w-full max-w-(--page) flex-1 px-4 py-6 sm:px-6 sm:py-7",
          shown ? "" : HIDDEN,
        )}
      >
        {children}
      </main>
      <footer
        className={cx(
          "mx-auto flex w-full max-w-(--page) flex-wrap gap-x-5 gap-y-1 px-4 py-4 text-sm",
          "text-muted sm:px-6",
          complete ? "" : HIDDEN,
        )}
      >
        {info.data ? <span>Coder {info.data.version}</span> : null}
        <Link to="/install" className="hover:text-text hover:underline">
          Install the CLI
        </Link>
      </footer>
      {bar ? (
        <div data-bottom-bar className="min-h-8 max-sm:min-h-28 lg:sticky lg:bottom-0">
          {quiet ? (
            <Suspense fallback={null}>
              <DeploymentBar />
            </Suspense>
          ) : null}
        </div>
      ) : null}
      {help ? (
        <Suspense fallback={null}>
          <ShortcutSheet onClose={() => setHelp(false)} />
        </Suspense>
      ) : null}
      {palette ? (
        <LatePalette
          origin={palette.origin}
          onClose={() => setPalette(null)}
          onHelp={() => setHelp(true)}
        />
      ) : null}
    </>
  );
}

function Brand() {
  const branding = useQuery(appearance).data;
  const name = branding?.application_name || "Coder";
  return (
    <Link
      to="/workspaces"
      className="mr-2 flex shrink-0 items-center gap-2.5 font-semibold"
      aria-label={`${name}, home`}
    >
      <img
        src={safeImage(branding?.logo_url) ?? "/favicon.svg"}
        alt=""
        className="h-6.5 max-w-32"
      />
      <span className="max-w-40 truncate max-sm:hidden">{name}</span>
    </Link>
  );
}

const NAV_LINK = cx(
  "rounded-md px-2.5 py-1.5 text-base font-medium text-muted transition-colors",
  "duration-(--quick) hover:bg-hover hover:text-text aria-[current=page]:bg-hover",
  "aria-[current=page]:text-text",
);

function MainNav() {
  const may = usePermissions();
  const { pathname } = useLocation();
  const inside = pathname.startsWith("/@"); // a single workspace: its address does not begin with the list's
  const admin = ADMIN.filter((item) => item.allowed?.(may) ?? true);
  return (
    <>
      <nav aria-label="Main" className="flex items-center gap-1 max-md:hidden">
        {MAIN.map((item) => (
          <NavLink
            key={item.to}
            to={item.to}
            className={
              inside && item.to === "/workspaces" ? `${NAV_LINK} bg-hover text-text!` : NAV_LINK
            }
          >
            {item.text}
          </NavLink>
        ))}
        {admin.length > 0 ? (
          <Menu
            align="start"
            trigger={
              <Button
                variant="quiet"
                aria-current={isAdminPage(pathname) ? "true" : undefined}
                className="aria-[current=true]:bg-hover aria-[current=true]:text-text"
              >
                Admin settings
                <ChevronDown />
              </Button>
            }
          >
            {admin.map((item) => (
              <MenuItem key={item.to} to={item.to}>
                {item.text}
              </MenuItem>
            ))}
          </Menu>
        ) : null}
      </nav>
      <div className="md:hidden">
        <Menu
          align="start"
          trigger={
            <IconButton label="Menu">
              <MenuIcon />
            </IconButton>
          }
        >
          {MAIN.map((item) => (
            <MenuItem key={item.to} to={item.to}>
              {item.text}
            </MenuItem>
          ))}
          {admin.length > 0 ? <MenuSeparator /> : null}
          {admin.map((item) => (
            <MenuItem key={item.to} to={item.to}>
              {item.text}
            </MenuItem>
          ))}
        </Menu>
      </div>
    </>
  );
}
