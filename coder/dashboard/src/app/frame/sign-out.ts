import { post } from "../../api/client";

/** End the session. A full page load: nothing of this user stays in memory. */
export async function signOut(): Promise<void> {
  await post("/api/v2/users/logout").catch(() => undefined);
  window.location.assign("/login");
}
