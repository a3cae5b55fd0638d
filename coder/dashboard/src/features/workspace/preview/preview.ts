// A preview of an update: started by a click, polled until its end, canceled when the page closes.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

import { ApiError, get, post, removeIfPresent } from "../../../api/client";
import type {
  TemplateUpdatePreview,
  UpdatePreview,
  UpdatePreviewPlan,
  UpdatePreviewResource,
} from "../../../api/types";
import type { Tone } from "../../../ui/Badge";
import type { NoticeKind } from "../../../ui/Notice";

const POLL_MS = 1500;

export const isFinal = ({ status }: UpdatePreview): boolean =>
  status === "succeeded" || status === "failed" || status === "canceled";

export const isOver = (preview: UpdatePreview | TemplateUpdatePreview): boolean =>
  "previews" in preview ? preview.previews.every(isFinal) : isFinal(preview);

/** Whether the caller may no longer see the preview: later answers will be the same. */
const isRefused = (error: Error | null): boolean =>
  error instanceof ApiError && (error.status === 403 || error.status === 404);

/** Nothing cancels what the server has already finished. */
export function usePreview<T extends UpdatePreview | TemplateUpdatePreview>(
  path: string,
  body: unknown,
) {
  const gone = useRef(false);
  const over = useRef(false);
  const cancel = (id: string) => removeIfPresent(`${path}/${id}`).catch(() => undefined); // the server cancels it after a while
  const start = useMutation({
    mutationFn: async () => {
      const started = await post<T>(path, body);
      if (gone.current && started.id) void cancel(started.id);
      return started;
    },
  });
  const id = start.data?.id ?? null;
  const query = useQuery({
    queryKey: ["update preview", path, id],
    queryFn: () => get<T>(`${path}/${id ?? ""}`),
    enabled: id !== null,
    refetchInterval: ({ state }) =>
      (state.data && isOver(state.data)) || isRefused(state.error) ? false : POLL_MS,
    gcTime: 0,
  });
  const latest = query.data ?? start.data ?? null;
  useEffect(() => {
    over.current = latest !== null && isOver(latest);
  }, [latest]);
  useEffect(() => {
    gone.current = false;
    const stop = () => {
      if (id !== null && !over.current) void cancel(id);
    };
    window.addEventListener("pagehide", stop);
    return () => {
      gone.current = true;
      window.removeEventListener("pagehide", stop);
      stop();
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `cancel` depends on the path alone
  }, [path, id]);
  return {
    start: () => start.mutate(),
    isStarting: start.isPending,
    error: start.error ?? (query.isLoadingError || isRefused(query.error) ? query.error : null),
    preview: latest,
    changes: start.data?.changes ?? null,
    cancel: () => {
      if (id !== null) void cancel(id).then(() => query.refetch());
    },
  };
}

export const ACTION_WORDS: Record<UpdatePreviewResource["action"], string> = {
  keep: "Kept",
  create: "Created",
  update: "Changed in place",
  replace: "Replaced",
  restart: "Stopped and created again",
  delete: "Destroyed",
  forget: "No longer managed",
  unknown: "Not known",
};

export const DISK_KINDS: Record<UpdatePreviewPlan["disk"], NoticeKind> = {
  kept: "good",
  none: "info",
  unknown: "warning",
  lost: "error",
};

/** Without a disk nothing is kept: not good, and nothing that was promised is lost. */
export const DISK_TONES: Record<UpdatePreviewPlan["disk"], Tone> = {
  kept: "good",
  none: "idle",
  unknown: "warn",
  lost: "bad",
};

export const DISK_WORDS: Record<UpdatePreviewPlan["disk"], string> = {
  kept: "Disk stays",
  none: "No disk",
  unknown: "Not known",
  lost: "Disk is lost",
};
