// The signed-in user, for every page below the guard that provides it.
import { createContext, useContext } from "react";

import type { User } from "../../api/types";

/** Provided by `SignedIn` of the application's guards. */
export const SignedInUser = createContext<User | null>(null);

/** Return the signed-in user. Throws outside of `SignedIn`. */
export function useMe(): User {
  const user = useContext(SignedInUser);
  if (user === null) throw new Error("useMe was called outside of SignedIn");
  return user;
}
