// Waiting without a page. Vitest's own wait gives up after a second, which measures the machine's
// speed.
import { vi } from "vitest";

const LIMIT_MS = 20_000;

export const soon = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: LIMIT_MS });
