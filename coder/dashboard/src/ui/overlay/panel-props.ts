// What an open menu or panel is given by its button, whose module is loaded before it.
import type { ReactNode, RefObject } from "react";

export interface MenuPanelProps {
  anchor: RefObject<HTMLButtonElement | null>;
  triggerId: string;
  contentId: string;
  open: boolean;
  onOpenChange: (open: boolean) => void;
  align: "start" | "end";
  label: string | undefined;
  children: ReactNode;
}

export interface MenuItemProps {
  children: ReactNode;
  icon?: ReactNode;
  onSelect?: () => void;
  to?: string;
  href?: string;
  /** Opens a file or another site: a plain browser link. */
  download?: boolean;
  danger?: boolean;
  disabled?: boolean;
  /** The reason why it is disabled, or its effect. */
  hint?: ReactNode;
  testId?: string;
}

export interface MenuCheckProps {
  checked: boolean;
  onChange: (checked: boolean) => void;
  children: ReactNode;
}

export interface PopoverPanelProps {
  anchor: RefObject<HTMLButtonElement | null>;
  id: string;
  open: boolean;
  onOpenChange: (open: boolean) => void;
  align: "start" | "center" | "end";
  label: string;
  className: string;
  children: ReactNode;
}
