// Names of parameters in links to the form for a new workspace.

/** Return a parameter's name as links write it: lower case, blanks as underscores. */
export const linkName = (name: string): string => name.trim().toLowerCase().replaceAll(" ", "_");

/** Return the names in a list such as that of `disable_params`. */
export const lockedNames = (list: string): ReadonlySet<string> =>
  new Set(list.split(",").map(linkName).filter(Boolean));
